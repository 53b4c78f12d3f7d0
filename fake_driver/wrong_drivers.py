"""Drivers that do a verb wrong, each in one way. `faults` puts one of them in the place of the right one; nothing else knows them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver import opaque
from fake_driver.api import PATIENCE
from fake_driver.checkpoint import Ledger
from fake_driver.claims import AllocatedDevice, ClaimRef, Object, allocated
from fake_driver.driver import Collaborators, Driver, Prepared
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory

Answer = tuple[Prepared, ...]
_UNTIL_CONTAINERS_RUN = 1.5  # seconds after the answer


class UnprepareFails(Driver):
    """Nothing can ever be unprepared, so no pod that has a claim ends."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Refuse."""
        raise ClaimRefused(f"claim {ref} is not unprepared: fault unprepare-fails")


class NeverGiveBack(Driver):
    """What was unprepared stays taken, so nobody else gets the device on this node."""

    def _release(self, _ledger: Ledger, uid: str) -> bool:
        return self._cdi.remove(uid)


class UnprepareForgetsTheDevice(Driver):
    """The end of one claim takes the CDI files of all other claims that have one of its devices."""

    def _release(self, ledger: Ledger, uid: str) -> bool:
        mine = ledger.claims.get(uid)
        for other, claim in ledger.claims.items():
            if mine and other != uid and _places(claim.devices) & _places(mine.devices):
                self._cdi.remove(other)
        return super()._release(ledger, uid)


class CdiFileIsLost(Driver):
    """The CDI file goes when the containers run, so none of them can be started again."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Answer rightly, and remove the file a little later."""
        answer = super().prepare(ref, patience)
        timer = threading.Timer(_UNTIL_CONTAINERS_RUN, self._cdi.remove, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer


class FirstDeviceOnly(Driver):
    """Of several devices of a claim the answer has only the first."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Leave out the others."""
        return super().prepare(ref, patience)[:1]


class ForgetRequestNames(Driver):
    """The devices of a claim are answered under each other's requests."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Give each device the request of the one before it."""
        answer = super().prepare(ref, patience)
        requests = [each.device.request for each in answer]
        shifted = zip(answer, [*requests[-1:], *requests[:-1]], strict=True)
        return tuple(replace(each, device=replace(each.device, request=request)) for each, request in shifted)


class AnswerWithSubrequestNames(Driver):
    """Where a request has alternatives, its devices are answered under the name of the chosen one, which no container refers to."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Take the whole name for the request's."""
        return tuple(replace(each, device=_Whole(**vars(each.device))) for each in super().prepare(ref, patience))


class KnowClaimsByName(Driver):
    """A claim that has the name of an earlier one gets the earlier one's answer."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._answers: dict[tuple[str, str], Answer] = {}

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Answer from memory, where there is one."""
        return self._answers.setdefault((ref.namespace, ref.name), super().prepare(ref, patience))


class TakesConfigOfOthers(Driver):
    """Configuration for any driver is taken for its own."""

    def __init__(self, name: str, use: Collaborators, *parts: Any) -> None:
        def read(ref: ClaimRef, patience: float) -> Object:
            claim = json.loads(json.dumps(use.read_claim(ref, patience)))
            devices = claim.get("status", {}).get("allocation", {}).get("devices", {})
            devices["config"] = self._taken(devices.get("config") or [], claim, ref)
            return dict(claim)

        super().__init__(name, replace(use, read_claim=read), *parts)

    def _taken(self, entries: list[Any], _claim: Object, _ref: ClaimRef) -> list[Any]:
        return [{**each, "opaque": {**each["opaque"], "driver": self.name}} for each in entries]


class SwallowsConfigErrors(TakesConfigOfOthers):
    """Configuration that is not valid is left out, and nobody learns of it."""

    def _taken(self, entries: list[Any], claim: Object, ref: ClaimRef) -> list[Any]:
        try:
            opaque.configs(claim, ref, self.name)
        except ClaimRefused:
            return []
        return entries


class RefusedClaimsStayPrepared(Driver):
    """A claim that is refused takes its devices all the same."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Refuse, and remember."""
        try:
            return super().prepare(ref, patience)
        except ClaimRefused:
            with self._checkpoint.locked() as ledger:
                ledger.keep(allocated(self._use.read_claim(ref, patience), ref, self.name))
            raise

    def unprepare(self, ref: ClaimRef) -> bool:
        """Whose CDI file is not there was never prepared, so there is nothing to do."""
        return self._cdi.path(ref.uid).exists() and super().unprepare(ref)


class FirstPrepareFails(Driver):
    """The first attempt to prepare a claim fails, and so do all that follow."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Remember what failed."""
        if ref.uid in self._failed:
            raise ClaimRefused(f"claim {ref} was refused before: fault first-prepare-fails")
        try:
            return super().prepare(ref, patience)
        except ClaimRefused:
            self._failed.add(ref.uid)
            raise

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._failed: set[str] = set()


class LeavesCdiFiles(Driver):
    """The devices of a claim are given back, but its CDI file stays."""

    def _release(self, ledger: Ledger, uid: str) -> bool:
        known = uid in ledger.claims
        ledger.forget(uid)
        return known


class ReuseCdiNames(Driver):
    """Every claim's first device has the CDI id that the node's first claim had."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Give the ids of the first."""
        answer = super().prepare(ref, patience)
        self._first = getattr(self, "_first", answer)
        return tuple(replace(each, cdi_ids=one.cdi_ids) for each, one in zip(answer, self._first, strict=False))


class AnswerWithoutCdiIds(Driver):
    """All is made ready, but the kubelet is not told what to give to containers."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Leave out the ids."""
        return tuple(replace(each, cdi_ids=()) for each in super().prepare(ref, patience))


class AnswerWithAnotherDevice(Driver):
    """The containers get the right device, but the kubelet is told that it is the node's first."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Name another device."""
        first = self._use.inventory.devices[0].name
        answer = super().prepare(ref, patience)
        return tuple(replace(each, device=replace(each.device, device=first, pool="nowhere")) for each in answer)


class UnprepareNeedsTheClaim(Driver):
    """A claim that the API server does not have any more cannot be unprepared."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Read it first."""
        try:
            self._use.read_claim(ref, PATIENCE)
        except ApiError as gone:
            raise ClaimRefused(f"claim {ref} cannot be read: {gone}") from gone
        return super().unprepare(ref)


class UnprepareOfUnknownFails(Driver):
    """To unprepare what is not prepared is an error."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Refuse what nobody prepared."""
        if not super().unprepare(ref):
            raise ClaimRefused(f"claim {ref} is not prepared: fault unprepare-of-unknown-fails")
        return True


class MakeUpDevices(Inventory):
    """A device that nobody knows is taken for the first one of the node."""

    def find(self, pool: str, name: str) -> Device:
        """Look, and make do."""
        try:
            return super().find(pool, name)
        except ClaimRefused:
            return self.devices[0]


class KnowDevicesByName(Inventory):
    """A device of another node is taken for the one that has its name here."""

    def find(self, _pool: str, name: str) -> Device:
        """Look at the name alone."""
        return super().find(self.pool, name)


class _Whole(AllocatedDevice):
    @property
    def base_request(self) -> str:
        return self.request


def _places(devices: Sequence[AllocatedDevice]) -> set[tuple[str, str]]:
    return {(device.pool, device.device) for device in devices}
