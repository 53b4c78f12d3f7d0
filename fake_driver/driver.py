"""The two verbs of a DRA driver. The servicers call them; here the pure parts and the effects come together.

prepare:    read the claim -> what is ours in it -> the devices exist and are free -> checkpoint -> CDI file -> answer
unprepare:  CDI file away -> checkpoint away; needs neither the API server nor the claim
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from fake_driver import cdi
from fake_driver.cdi import CdiDevice, CdiFolder, Environment
from fake_driver.checkpoint import Checkpoint, Ledger
from fake_driver.claims import AllocatedDevice, ClaimRef, Object, PreparedClaim, allocated, conflict
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory
from fake_driver.locks import ClaimLocks
from fake_driver.names import UID, fits

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """One device of the answer."""

    device: AllocatedDevice
    cdi_ids: tuple[str, ...]


@dataclass(frozen=True)
class Collaborators:
    """What the verbs need; a fault replaces one of them."""

    inventory: Inventory
    read_claim: Callable[[ClaimRef], Object]
    environment: Callable[[Device], Environment] = cdi.environment


class Driver:
    """One driver on one node."""

    def __init__(self, name: str, use: Collaborators, folder: CdiFolder, checkpoint: Checkpoint) -> None:
        self.name, self._use, self._cdi, self._checkpoint = name, use, folder, checkpoint
        self._locks = ClaimLocks()

    def recover(self) -> None:
        """What has to be done once, before the first call: clean up after a killed process, and find lost claims."""
        self._checkpoint.recover(self._cdi.claims())
        with self._checkpoint.locked() as ledger:
            self._cdi.sweep()
            log.info("%d claims are prepared", len(ledger.claims))

    def prepare(self, ref: ClaimRef) -> tuple[Prepared, ...]:
        """Make a claim's devices ready. Asked again, it does all of it again and gives the same answer."""
        with self._locks.hold(ref.uid):
            claim = self._what_is_ours(ref.checked())
            additions = tuple(self._addition(ref.uid, device) for device in claim.devices)
            with self._checkpoint.locked() as ledger:
                self._commit(ledger, claim, additions)
        ids = [(self._cdi.qualified(addition.name),) for addition in additions]
        return tuple(map(Prepared, claim.devices, ids))

    def unprepare(self, ref: ClaimRef) -> bool:
        """Give a claim's devices back; False when it was not prepared, which is no error. Only the UID counts."""
        if not fits(UID, ref.uid):
            return False
        with self._locks.hold(ref.uid), self._checkpoint.locked() as ledger:
            return self._release(ledger, ref.uid)

    def _what_is_ours(self, ref: ClaimRef) -> PreparedClaim:
        try:
            return allocated(self._use.read_claim(ref), ref, self.name)
        except ApiError as lost:
            known = self._known(ref) if lost.status in {0, 429} or lost.status >= 500 else None
            if not known:
                raise ClaimRefused(f"claim {ref} cannot be read: {lost}") from lost
            log.warning("claim %s is prepared again from the checkpoint: %s", ref, lost)
            return known

    def _known(self, ref: ClaimRef) -> PreparedClaim | None:
        with self._checkpoint.locked() as ledger:
            return ledger.claims.get(ref.uid)

    def _addition(self, uid: str, device: AllocatedDevice) -> CdiDevice:
        found = self._use.inventory.find(device.pool, device.device)
        return CdiDevice(cdi.device_name(uid, device), self._use.environment(found))

    def _commit(self, ledger: Ledger, claim: PreparedClaim, additions: tuple[CdiDevice, ...]) -> None:
        uid = claim.ref.uid
        if not claim.devices:
            self._release(ledger, uid)
            return
        problem = conflict(claim, ledger.claims)
        if problem:
            raise ClaimRefused(problem)
        is_new = uid not in ledger.claims
        ledger.keep(claim)
        try:
            self._cdi.write(uid, additions)
        except OSError:
            if is_new:
                self._release(ledger, uid)
            raise

    def _release(self, ledger: Ledger, uid: str) -> bool:
        had_file = self._cdi.remove(uid)
        known = uid in ledger.claims
        ledger.forget(uid)
        return known or had_file
