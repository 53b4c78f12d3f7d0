"""Drivers whose slices change or vanish for a moment without a reason, or have no devices."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from fake_driver.devices.model import Device
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slices import Object
from fake_driver.roles.node_driver import Parts

_SECONDS_UNTIL_READY = 1.0  # after the first publication
_SECONDS_BETWEEN = 2.0


def pools_without_devices(parts: Parts) -> Parts:
    """Each pool is complete, but its slices have no devices."""
    return replace(parts, alter_slices=lambda wanted: [_emptied(each) for each in wanted])


def slices_for_all_nodes(parts: Parts) -> Parts:
    """Slices have allNodes instead of the name of their node."""
    return replace(parts, alter_slices=lambda wanted: [_for_all_nodes(each) for each in wanted])


def rewrites_slices_in_place(parts: Parts) -> Parts:
    """A moment after its start and after each change, the driver removes all devices from its slices and adds them again."""
    return replace(parts, publisher=_EmptiesForAMoment)


def publishes_again_and_again(parts: Parts) -> Parts:
    """Every two seconds, the driver deletes its slices and creates the same slices again."""
    return replace(parts, publisher=_DeletesAgainAndAgain)


def unpublishes_devices_in_use(parts: Parts) -> Parts:
    """A device is not in its slice while a claim uses it, unless the claim has only a share of it or admin access."""
    in_use = _DevicesInUse()

    class KnownPublisher(Publisher):
        def start(self) -> None:
            in_use.refresh = self.refresh
            super().start()

    class Recording(Driver):
        def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
            prepared = super().prepare(ref, caller)
            in_use.set(ref.uid, (each.device for each in prepared))
            return prepared

        def unprepare(self, ref: ClaimRef) -> bool:
            was_prepared = super().unprepare(ref)
            in_use.set(ref.uid, ())
            return was_prepared

        def recover(self) -> None:
            super().recover()
            with self._checkpoint.locked() as checkpoint:
                prepared = [(uid, claim.devices) for uid, claim in checkpoint.claims.items()]
            for uid, devices in prepared:
                in_use.set(uid, devices)

    def published_devices(inventory: Inventory) -> Sequence[Device]:
        names = in_use.names(inventory.pool)
        return [each for each in parts.published_devices(inventory) if each.name not in names]

    return replace(parts, driver=Recording, publisher=KnownPublisher, published_devices=published_devices)


class _DevicesInUse:
    """The devices of prepared claims by UID, and the function that publishes a change of them."""

    def __init__(self) -> None:
        self.refresh: Callable[[], None] = lambda: None
        self._devices: dict[str, frozenset[tuple[str, str]]] = {}

    def set(self, uid: str, devices: Iterable[AllocatedDevice]) -> None:
        whole = (each for each in devices if not (each.admin_access or each.share_id))
        self._devices = {**self._devices, uid: frozenset((each.pool, each.device) for each in whole)}
        self.refresh()

    def names(self, pool: str) -> frozenset[str]:
        return frozenset(name for devices in self._devices.values() for where, name in devices if where == pool)


class _Disturbed(Publisher, ABC):
    """A publisher that calls `_disturb` when its slices have been there for a moment; the base class of mutants."""

    _is_scheduled = _is_due = False

    @abstractmethod
    def _disturb(self) -> None:
        """Do with the slices what the mutant does wrong."""

    def _reconcile(self) -> None:
        if self._is_due:
            self._is_due = False
            self._disturb()
            self._is_own_change = True
        super()._reconcile()
        if self.published.is_set() and not self._is_scheduled:
            self._schedule(_SECONDS_UNTIL_READY)

    def _schedule(self, seconds: float) -> None:
        self._is_scheduled = True
        timer = threading.Timer(seconds, self._let_it_begin)
        timer.daemon = True
        timer.start()

    def _let_it_begin(self) -> None:
        self._is_due = True
        self.refresh()


class _EmptiesForAMoment(_Disturbed):
    _is_empty = False

    def _handle(self, change: Any) -> None:
        super()._handle(change)
        if not self._is_due and self._is_own_change:  # the hardware has changed
            self._is_scheduled = False

    def _wanted(self) -> list[Object]:
        wanted = super()._wanted()
        return [_emptied(each) for each in wanted] if self._is_empty else wanted

    def _disturb(self) -> None:
        self._is_empty = True
        try:
            self._write()
        finally:
            self._is_empty = False


class _DeletesAgainAndAgain(_Disturbed):
    def _disturb(self) -> None:
        for old in list(self._cache.slices.values()):
            self._api.delete(self._path(old), uid=old["metadata"]["uid"])
            self._cache.record_delete(old)
        self._schedule(_SECONDS_BETWEEN)


def _for_all_nodes(slice_: Object) -> Object:
    spec = {name: value for name, value in slice_["spec"].items() if name != "nodeName"}
    return {**slice_, "spec": {**spec, "allNodes": True}}


def _emptied(slice_: Object) -> Object:
    return {**slice_, "spec": {**slice_["spec"], "devices": []}} if slice_["spec"].get("devices") else slice_


ALL = (
    pools_without_devices,
    slices_for_all_nodes,
    rewrites_slices_in_place,
    publishes_again_and_again,
    unpublishes_devices_in_use,
)
