"""Drivers that unprepare claims wrongly, or not at all."""

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
    """Unprepare always fails, so no pod with a claim terminates."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Raise ClaimRefused."""
        raise ClaimRefused(f"claim {ref} is not unprepared: mutant unprepare-fails")


class NeverGiveBack(Driver):
    """Unprepared devices stay held, so later claims for them are refused on this node."""

    def _release(self, _checkpoint: LockedCheckpoint, uid: str) -> bool:
        return self._cdi.remove(uid)


class UnprepareForgetsTheDevice(Driver):
    """Unprepare also removes the CDI files of other claims that have one of the claim's devices."""

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        mine = checkpoint.claims.get(uid)
        for other, claim in checkpoint.claims.items():
            if mine and other != uid and _identities(claim.devices) & _identities(mine.devices):
                self._cdi.remove(other)
        return super()._release(checkpoint, uid)


class LeavesCdiFiles(Driver):
    """Unprepare frees the devices of a claim, but its CDI file stays."""

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        known = uid in checkpoint.claims
        checkpoint.delete(uid)
        return known


class UnprepareNeedsTheClaim(Driver):
    """A claim that was deleted from the API server cannot be unprepared."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Read the claim first."""
        try:
            self._read_claim(ref, REQUEST_TIMEOUT)
        except ApiError as error:
            raise ClaimRefused(f"claim {ref} cannot be read: {error}") from error
        return super().unprepare(ref)


class UnprepareOfUnknownFails(Driver):
    """Unprepare of a claim that is not prepared fails."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Raise ClaimRefused if the claim is not prepared."""
        if not super().unprepare(ref):
            raise ClaimRefused(f"claim {ref} is not prepared: mutant unprepare-of-unknown-fails")
        return True


class UnprepareByName(Driver):
    """Unprepare finds the claim by namespace and name, so a newer claim of the same name loses its devices."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Unprepare the newest claim of that name."""
        with self._checkpoint.locked() as checkpoint:
            named = [
                uid
                for uid, claim in checkpoint.claims.items()
                if (claim.ref.namespace, claim.ref.name) == (ref.namespace, ref.name)
            ]
        return super().unprepare(replace(ref, uid=named[-1]) if named else ref)


class UnpreparesOnlyItsOwn(Driver):
    """Claims that another process prepared, for example an older version, are not unprepared."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._own: set[str] = set()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Record that this process prepared the claim."""
        answer = super().prepare(ref, caller)
        self._own.add(ref.uid)
        return answer

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        if uid in checkpoint.claims and uid not in self._own:
            raise ClaimRefused(f"claim {uid} was prepared by another process: mutant unprepares-only-its-own")
        return super()._release(checkpoint, uid)


def _identities(devices: Sequence[AllocatedDevice]) -> set[tuple[str, str]]:
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
