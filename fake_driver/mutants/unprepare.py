"""Drivers that give devices back wrongly, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.checkpoint import LockedCheckpoint
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice


class UnprepareFails(Driver):
    """Nothing can ever be unprepared, so no pod that has a claim ends."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Refuse."""
        raise ClaimRefused(f"claim {ref} is not unprepared: fault unprepare-fails")


class NeverGiveBack(Driver):
    """What was unprepared stays taken, so nobody else gets the device on this node."""

    def _release(self, _checkpoint: LockedCheckpoint, uid: str) -> bool:
        return self._cdi.remove(uid)


class UnprepareForgetsTheDevice(Driver):
    """The end of one claim takes the CDI files of all other claims that have one of its devices."""

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        mine = checkpoint.claims.get(uid)
        for other, claim in checkpoint.claims.items():
            if mine and other != uid and _places(claim.devices) & _places(mine.devices):
                self._cdi.remove(other)
        return super()._release(checkpoint, uid)


class LeavesCdiFiles(Driver):
    """The devices of a claim are given back, but its CDI file stays."""

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        known = uid in checkpoint.claims
        checkpoint.delete(uid)
        return known


class UnprepareNeedsTheClaim(Driver):
    """A claim that the API server does not have any more cannot be unprepared."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Read it first."""
        try:
            self._read_claim(ref, REQUEST_TIMEOUT)
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


class UnprepareByName(Driver):
    """The claim to unprepare is looked for by namespace and name, so its successor of the same name loses its devices."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Take the newest claim of that name."""
        with self._checkpoint.locked() as checkpoint:
            named = [
                uid
                for uid, claim in checkpoint.claims.items()
                if (claim.ref.namespace, claim.ref.name) == (ref.namespace, ref.name)
            ]
        return super().unprepare(replace(ref, uid=named[-1]) if named else ref)


class UnpreparesOnlyItsOwn(Driver):
    """What another process has prepared, an older version for example, is refused and stays prepared."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._own: set[str] = set()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Remember whose it is."""
        answer = super().prepare(ref, caller)
        self._own.add(ref.uid)
        return answer

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        if uid in checkpoint.claims and uid not in self._own:
            raise ClaimRefused(f"claim {uid} was prepared by another process: fault unprepares-only-its-own")
        return super()._release(checkpoint, uid)


def _places(devices: Sequence[AllocatedDevice]) -> set[tuple[str, str]]:
    return {(device.pool, device.device) for device in devices}


ALL = (
    UnprepareFails,
    NeverGiveBack,
    UnprepareForgetsTheDevice,
    LeavesCdiFiles,
    UnprepareNeedsTheClaim,
    UnprepareOfUnknownFails,
    UnprepareByName,
    UnpreparesOnlyItsOwn,
)
