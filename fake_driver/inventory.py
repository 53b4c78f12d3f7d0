"""The devices of this node, by name. Pure; the driver asks it, and slices are made from it."""

from __future__ import annotations

from fake_driver.errors import ClaimRefused
from fake_driver.hardware.model import Device


class Inventory:
    """One pool, named like the node, with its devices in a fixed order."""

    def __init__(self, pool: str, devices: tuple[Device, ...]) -> None:
        self.pool, self.devices = pool, devices
        self._by_name = {device.name: device for device in devices}

    def find(self, pool: str, name: str) -> Device:
        """The device that an allocation names; a device of another node or a device that is gone is refused."""
        if pool != self.pool:
            raise ClaimRefused(f"device {name} belongs to pool {pool}, but this node has only pool {self.pool}")
        found = self._by_name.get(name)
        if found is None:
            raise ClaimRefused(f"device {name} is not in pool {pool}, which has {len(self.devices)} devices")
        return found
