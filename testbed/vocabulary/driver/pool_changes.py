"""The states of pools during a change of hardware or an update of the driver, as schedulers could see them."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.drivers.published.pool_transitions import PoolState, pool_states
from testbed.drivers.published.slices import Device
from testbed.kube.client import Object
from testbed.vocabulary.world import RESOURCE, World

_SETTLING = 1.0  # seconds until the last writes of a change are observed


@dataclass(frozen=True)
class PoolWatch:
    """The states of some pools since its start. `before` are the slices at the start, `version` is their resource version."""

    world: World
    pools: tuple[str, ...]
    before: tuple[Object, ...]
    version: str

    @property
    def lost_devices(self) -> tuple[Device, ...]:
        """Return the devices from the start that were missing from a later complete state, sorted."""
        return tuple(sorted(device for pool in self.pools for device in self._lost(pool)))

    def states(self, pool: str) -> tuple[PoolState, ...]:
        """Return all complete states of a pool, from the start until now."""
        driver = self.world.driver_file.driver
        events = self.world.kube.watch(
            RESOURCE,
            "ResourceSlice",
            seconds=_SETTLING,
            fieldSelector=f"spec.driver={driver}",
            resourceVersion=self.version,
        )
        return pool_states(self.before, events, driver, pool)

    def _lost(self, pool: str) -> set[Device]:
        seen = [frozenset(each.names) for each in self.states(pool)]
        return {Device(self.world.driver_file.driver, pool, name) for now in seen for name in seen[0] - now}


@dataclass(frozen=True)
class PoolChange:
    """A change of the hardware of one pool, with the states of the pool during the change."""

    pool: str
    seen: PoolWatch

    @property
    def states(self) -> tuple[PoolState, ...]:
        """Return all complete states of the pool, from before the change until now."""
        return self.seen.states(self.pool)

    @property
    def intermediate_states(self) -> tuple[PoolState, ...]:
        """Return the complete states that differ from both the first and the last one."""
        seen = self.states
        return tuple(each for each in seen if each.devices not in (seen[0].devices, seen[-1].devices))

    @property
    def generations(self) -> list[int]:
        """Return the generation of each state."""
        return [each.generation for each in self.states]
