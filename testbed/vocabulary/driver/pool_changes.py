"""The states of pools during a change of hardware, or during a restart or update of the driver, as schedulers could see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.drivers.published.pool_transitions import (
    PoolState,
    lost_devices,
    pool_states,
    slices_over_time,
    versions,
)
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet, eventually

_WIPED_AFTER = 30  # seconds; the default of kubelets
_SETTLING = 1.0  # seconds in which the last writes of a change are made

_SLOW = (
    f"a slow stop or start: after {_WIPED_AFTER} s without the driver, a kubelet deletes the slices of its node, and the driver publishes"
    " them again"
)
_REMOVED = (
    "the driver deleted or replaced them itself, when it stopped or when it started:"
    f" a kubelet deletes the slices of a driver only after {_WIPED_AFTER} s without it"
)


@dataclass(frozen=True)
class PoolWatch:
    """The states of some pools since its start. `before` are the slices at the start, `version` is their resource version."""

    world: World
    pools: tuple[str, ...]
    before: tuple[Object, ...]
    version: str

    @property
    def lost_devices(self) -> tuple[Device, ...]:
        """Return the unused devices from the start that were missing from a later complete state, or whose pool vanished, sorted."""
        lost = self._lost_devices()
        return tuple(sorted(lost - self.world.devices_in_use())) if lost else ()

    @property
    def lost_devices_in_use(self) -> tuple[Device, ...]:
        """Return the devices that were missing although a claim uses them now, sorted. A driver may remove them from its slices."""
        lost = self._lost_devices()
        return tuple(sorted(lost & self.world.devices_in_use())) if lost else ()

    def _lost_devices(self) -> frozenset[Device]:
        events, driver = self._events(), self.world.driver_file.driver
        lost = ((pool, name) for pool in self.pools for name in lost_devices(self.before, events, driver, pool))
        return frozenset(Device(driver, pool, name) for pool, name in lost)

    @property
    def replaced_slices(self) -> tuple[str, ...]:
        """Return the names of the slices from the start that were deleted since, also if a slice of this name exists again, sorted."""
        now = {each["metadata"]["uid"] for each in self.world.slices()}
        mine = [each["metadata"] for each in self.before if each["spec"]["pool"]["name"] in self.pools]
        return tuple(sorted(str(each["name"]) for each in mine if each["uid"] not in now))

    def should_stay_published(self, seconds: float) -> None:
        """Require that no slice was replaced and no device was missing while the driver was restarted or updated for so many seconds."""
        replaced, lost = self.replaced_slices, self.lost_devices
        if not (replaced or lost):
            return
        seen = [f"replaced slices: {', '.join(replaced)}"] if replaced else []
        seen += [f"missing for a time: {', '.join(map(str, lost))}"] if lost else []
        raise DriverFailed(
            "expected the slices and devices of the driver to stay published during its restart or update\n"
            f"  last seen: {'; '.join(seen)}; the driver was ready again after {seconds:.1f} s\n"
            f"  likely cause: {_SLOW if seconds >= _WIPED_AFTER else _REMOVED}"
        )

    def states(self, pool: str) -> tuple[PoolState, ...]:
        """Return all complete states of a pool, from the start until now."""
        return pool_states(self.before, self._events(), self.world.driver_file.driver, pool)

    def _events(self) -> Sequence[Object]:
        """Return the events since the start. Wait until they include the current slices, which prove that none is missing."""
        return eventually(self._complete_events, "the watch of ResourceSlices to show the current ones", budgets.POOL)

    def _complete_events(self) -> Sequence[Object]:
        now = versions(self.world.slices())
        watched = self.world.kube.watch(
            RESOURCE,
            "ResourceSlice",
            seconds=_SETTLING,
            fieldSelector=f"spec.driver={self.world.driver_file.driver}",
            resourceVersion=self.version,
        )
        events = list(watched)
        if not any(versions(slices) == now for slices in slices_over_time(self.before, events)):
            raise NotYet(
                f"{len(events)} events since resource version {self.version}, the last slices are not among them"
            )
        return events


@dataclass(frozen=True)
class PoolChange:
    """A change of the hardware of one pool, with the states of the pool during the change."""

    pool: str
    seen: PoolWatch

    @property
    def states(self) -> tuple[PoolState, ...]:
        """Return all complete states of the pool, from before the change until now. Raise DriverFailed if the change is not among them."""
        seen = self.seen.states(self.pool)
        if len(seen) < 2:
            raise DriverFailed(f"pool {self.pool} was never complete with other devices\n  last seen: {seen}")
        return seen

    @property
    def intermediate_states(self) -> tuple[PoolState, ...]:
        """Return the complete states that differ from both the first and the last one."""
        seen = self.states
        return tuple(each for each in seen if each.devices not in (seen[0].devices, seen[-1].devices))

    @property
    def generations(self) -> list[int]:
        """Return the generation of each state."""
        return [each.generation for each in self.states]
