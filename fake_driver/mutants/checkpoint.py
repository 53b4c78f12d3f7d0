"""Drivers that use their checkpoint wrongly: they keep too little of it, or trust it too much."""

from __future__ import annotations

from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.checkpoint import LockedCheckpoint
from fake_driver.preparing.claims import PreparedClaim
from fake_driver.preparing.driver import Driver


class ForgetTheCheckpoint(Driver):
    """No checkpoint is kept, so prepared claims are unknown after a restart and to claims for the same device."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        additions = super()._commit(checkpoint, claim)
        checkpoint.delete(claim.ref.uid)
        return additions


class StartsClean(Driver):
    """A driver that starts unprepares all claims, although their pods run."""

    def recover(self) -> None:
        """Recover, and release all claims."""
        super().recover()
        with self._checkpoint.locked() as checkpoint:
            for uid in tuple(checkpoint.claims):
                self._release(checkpoint, uid)


class TrustsItsCheckpoint(Driver):
    """A claim in the checkpoint is not prepared again, although its CDI file may be missing."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        return self._cdi_devices(claim) if claim.ref.uid in checkpoint.claims else super()._commit(checkpoint, claim)


ALL = (
    ForgetTheCheckpoint,
    StartsClean,
    TrustsItsCheckpoint,
)
