"""What could be seen of pools while something happened: `hardware` changed, or the driver was updated. For `hardware` and `driver`."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.drivers.published.pool_transitions import PoolState, pool_states
from testbed.drivers.published.slices import Device
from testbed.kube.client import Object
from testbed.vocabulary.world import RESOURCE, World

_SETTLING = 1.0  # seconds in which a driver that is done writes nothing more


@dataclass(frozen=True)
class PoolWatch:
    """What could be seen of some pools since it began. `version` is that of the API's objects then, `before` the slices."""

    world: World
    pools: tuple[str, ...]
    before: tuple[Object, ...]
    version: str

    @property
    def lost_devices(self) -> tuple[Device, ...]:
        """The devices of the beginning that lacked later in a pool which a scheduler took for whole, sorted."""
        return tuple(sorted(device for pool in self.pools for device in self._missed(pool)))

    def states(self, pool: str) -> tuple[PoolState, ...]:
        """Each state in which a scheduler took a pool for whole, from before the beginning until now."""
        driver = self.world.driver_file.driver
        events = self.world.kube.watch(
            RESOURCE,
            "ResourceSlice",
            seconds=_SETTLING,
            fieldSelector=f"spec.driver={driver}",
            resourceVersion=self.version,
        )
        return pool_states(self.before, events, driver, pool)

    def _missed(self, pool: str) -> set[Device]:
        seen = [frozenset(each.names) for each in self.states(pool)]
        return {Device(self.world.driver_file.driver, pool, name) for now in seen for name in seen[0] - now}


@dataclass(frozen=True)
class PoolChange:
    """One change of the hardware of one pool, and what could be seen of it meanwhile."""

    pool: str
    seen: PoolWatch

    @property
    def states(self) -> tuple[PoolState, ...]:
        """Each state in which a scheduler took the pool for whole, from before the change until now."""
        return self.seen.states(self.pool)

    @property
    def intermediate_states(self) -> tuple[PoolState, ...]:
        """The whole states that are neither what was before nor what is now."""
        seen = self.states
        return tuple(each for each in seen if each.devices not in (seen[0].devices, seen[-1].devices))

    @property
    def generations(self) -> list[int]:
        """The generations of the pool, as they were seen."""
        return [each.generation for each in self.states]
