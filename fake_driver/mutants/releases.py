"""Drivers that work alone, but not after or before the previous release, which is the correct driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fake_driver.errors import ClaimRefused
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.checkpoint import Checkpoint, LockedCheckpoint, Rebuild
from fake_driver.preparing.claims import PreparedClaim
from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts


class _Marking(Driver):
    """A driver that marks the claims that its release prepares."""

    marks: Path

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        self._mark(claim.ref.uid).touch()
        return super()._commit(checkpoint, claim)

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        released = super()._release(checkpoint, uid)
        self._mark(uid).unlink(missing_ok=True)
        return released

    def _mark(self, uid: str) -> Path:
        return self.marks / f"{uid}.release"


class _Forgetting(_Marking):
    def recover(self) -> None:
        super().recover()
        with self._checkpoint.locked() as checkpoint:
            for uid in [each for each in checkpoint.claims if not self._mark(each).exists()]:
                self._release(checkpoint, uid)


class _Refusing(_Marking):
    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        if uid in checkpoint.claims and not self._mark(uid).exists():
            raise ClaimRefused(f"claim {uid} was prepared by the previous release")
        return super()._release(checkpoint, uid)


class _Migrating(Checkpoint):
    """A checkpoint that moves to another folder, and leaves a file in place of the old one."""

    def __init__(self, folder: Path, rebuild: Rebuild = lambda _uid: None) -> None:
        moved = folder.with_name("claims-v2")
        if folder.is_dir():
            folder.rename(moved)
        folder.write_text("The claims are in claims-v2.\n")
        super().__init__(moved, rebuild)


def forgets_the_previous_release(parts: Parts) -> Parts:
    """The driver cannot read the checkpoint of the previous release, and releases those claims at its start, although their pods run."""
    return replace(parts, driver=_marking(_Forgetting, parts))


def refuses_claims_of_the_previous_release(parts: Parts) -> Parts:
    """The driver cannot read the checkpoint of the previous release, and refuses to unprepare those claims."""
    return replace(parts, driver=_marking(_Refusing, parts))


def migrates_its_checkpoint_for_good(parts: Parts) -> Parts:
    """The driver moves its checkpoint, so that the previous release does not start any more."""
    return replace(parts, checkpoint=_Migrating)


def _marking(driver: type[_Marking], parts: Parts) -> type[Driver]:
    return type(driver.__name__, (driver,), {"marks": parts.data / "claims"})


ALL = (
    forgets_the_previous_release,
    refuses_claims_of_the_previous_release,
    migrates_its_checkpoint_for_good,
)
