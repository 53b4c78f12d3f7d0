"""The devices that this node has or can reach, by pool and name. The driver looks them up; the live hardware replaces them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fake_driver.devices.model import CounterConsumption, Device, Pool
from fake_driver.errors import ClaimRefused


class Inventory:
    """The devices of the node's own pool, which has the node's name, in a fixed order, and the network pools."""

    def __init__(self, pool: str, devices: tuple[Device, ...], network: Iterable[Pool] = ()) -> None:
        self.pool = pool
        self._network = tuple(network)
        self._consumption: dict[tuple[str, str], tuple[CounterConsumption, ...]] = {}
        self.set_devices(devices)

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        """Replace the devices of the node's own pool. Concurrent readers see all of the old or all of the new ones."""
        pools = (Pool(self.pool, devices, self.pool), *self._network)
        self.devices = devices
        self._pools = {each.name: {device.name: device for device in each.devices} for each in pools}
        # An unplugged device may still be prepared, so its consumption stays known.
        self._consumption |= {(pool, device.name): device.consumes_counters for pool, device in self.with_pools()}

    def find(self, pool: str, name: str) -> Device:
        """Return the device that an allocation names. Raise ClaimRefused if this node does not have it."""
        devices = self._pools.get(pool)
        if devices is None:
            raise ClaimRefused(
                f"device {name} belongs to pool {pool}, but this node only has pool {', '.join(self._pools)}"
            )
        found = devices.get(name)
        if found is None:
            raise ClaimRefused(f"device {name} is not in pool {pool}, which has {len(devices)} devices")
        return found

    def consumption(self, pool: str, name: str) -> tuple[CounterConsumption, ...]:
        """Return what a device consumes from shared counters, even if it is unplugged."""
        return self._consumption.get((pool, name), ())

    def with_pools(self) -> Iterator[tuple[str, Device]]:
        """Return each device with the name of its pool."""
        return ((pool, device) for pool, devices in self._pools.items() for device in devices.values())
