"""Drivers that come to grief when they start again: they forget, or trust, too much."""

from __future__ import annotations

from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.checkpoint import LockedCheckpoint
from fake_driver.preparing.claims import PreparedClaim
from fake_driver.preparing.driver import Driver


class ForgetTheCheckpoint(Driver):
    """What is prepared is remembered nowhere, so a restart, and a second claim for the same device, find nothing."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        additions = super()._commit(checkpoint, claim)
        checkpoint.delete(claim.ref.uid)
        return additions


class StartsClean(Driver):
    """A new process removes what an earlier one has prepared, though its pods run."""

    def recover(self) -> None:
        """Recover, and forget it all."""
        super().recover()
        with self._checkpoint.locked() as checkpoint:
            for uid in tuple(checkpoint.claims):
                self._release(checkpoint, uid)


class TrustsItsCheckpoint(Driver):
    """What is in the checkpoint is taken for done, though its CDI file may be gone."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        return self._cdi_devices(claim) if claim.ref.uid in checkpoint.claims else super()._commit(checkpoint, claim)


ALL = (
    ForgetTheCheckpoint,
    StartsClean,
    TrustsItsCheckpoint,
)
