"""The devices that this node has or can reach, by name. The driver asks it, and slices are made from it; `live` changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fake_driver.devices.model import CounterConsumption, Device, Pool
from fake_driver.errors import ClaimRefused


class Inventory:
    """The node's own pool, named like the node, with its devices in a fixed order; and pools of the network."""

    def __init__(self, pool: str, devices: tuple[Device, ...], network: Iterable[Pool] = ()) -> None:
        self.pool = pool
        self._network = tuple(network)
        self._consumption: dict[tuple[str, str], tuple[CounterConsumption, ...]] = {}
        self.set_devices(devices)

    def set_devices(self, devices: tuple[Device, ...]) -> None:
        """From now on the node has these devices. Who is just asking sees the old ones or the new ones."""
        whole = (Pool(self.pool, devices, self.pool), *self._network)
        self.devices = devices
        self._pools = {each.name: {device.name: device for device in each.devices} for each in whole}
        # What is unplugged stays known here, for it may still be prepared.
        self._consumption = {
            **self._consumption,
            **{(pool, each.name): each.consumes_counters for pool, each in self.with_pools()},
        }

    def find(self, pool: str, name: str) -> Device:
        """The device that an allocation names; a device of another node or a device that is gone is refused."""
        devices = self._pools.get(pool)
        if devices is None:
            only = ", ".join(self._pools)
            raise ClaimRefused(f"device {name} belongs to pool {pool}, but this node has only pool {only}")
        found = devices.get(name)
        if found is None:
            raise ClaimRefused(f"device {name} is not in pool {pool}, which has {len(devices)} devices")
        return found

    def consumption(self, pool: str, name: str) -> tuple[CounterConsumption, ...]:
        """What a device takes from counters that it shares with others, also when it is unplugged by now."""
        return self._consumption.get((pool, name), ())

    def with_pools(self) -> Iterator[tuple[str, Device]]:
        """Each device, after the name of its pool."""
        return ((pool, device) for pool, devices in self._pools.items() for device in devices.values())
