"""The two verbs of a DRA driver. The servicers call them; here the pure parts and the effects come together.

prepare:    read the claim -> what is ours in it, and how it is configured -> it is free -> checkpoint -> metadata and CDI file -> answer;
            status later
unprepare:  CDI file and metadata away -> checkpoint away; needs neither the API server nor the claim
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.devices.model import Device
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.name_patterns import UID, matches
from fake_driver.preparing import cdi, claims, opaque_configuration, stale_claims
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice, CdiFolder, Environment
from fake_driver.preparing.checkpoint import Checkpoint, LockedCheckpoint
from fake_driver.preparing.claim_locks import ClaimLocks
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, Object, PreparedClaim, read_allocation
from fake_driver.preparing.device_metadata import MetadataFolder
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.stale_claims import DeviceHeld

log = logging.getLogger(__name__)
# Where a process may be killed; `faults` does it on purpose, and after each of them a new process must find its way.
CRASH_POINTS = (
    "before-checkpoint", "after-checkpoint", "after-cdi",
    "before-cdi-removal", "after-cdi-removal", "after-checkpoint-removal",
)  # fmt: skip


@dataclass(frozen=True)
class PreparedDevice:
    """One device of the answer."""

    device: AllocatedDevice
    cdi_ids: tuple[str, ...]


class StatusUpdates(Protocol):
    """Who tells others what became of a claim. Nothing here waits for it."""

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """A claim was prepared; `served` is the object, where it is at hand."""

    def released(self, uid: str) -> None:
        """A claim is not prepared any more."""


class NoStatusUpdates:
    """Tells nobody."""

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """Say nothing."""

    def released(self, uid: str) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Collaborators:
    """What the verbs need; a fault replaces one of them."""

    inventory: Inventory
    read_claim: Callable[[ClaimRef, float], Object]
    environment: Callable[[Device, AllocatedDevice, str], Environment] = cdi.environment
    config_order: opaque_configuration.Precedence = opaque_configuration.by_precedence
    conflict: Callable[[PreparedClaim, Mapping[str, PreparedClaim]], str] = claims.conflict
    reports: StatusUpdates = field(default_factory=NoStatusUpdates)
    metadata: MetadataFolder | None = None
    at_crash_point: Callable[[str], None] = lambda _point: None


class Driver:
    """One driver on one node."""

    def __init__(self, name: str, use: Collaborators, folder: CdiFolder, checkpoint: Checkpoint) -> None:
        self.name, self._use, self._cdi, self._checkpoint = name, use, folder, checkpoint
        self._locks = ClaimLocks()

    def recover(self) -> None:
        """What has to be done once, before the first call: clean up after a killed process, and find lost claims."""
        self._checkpoint.recover(self._cdi.claims())
        with self._checkpoint.locked() as checkpoint:
            self._cdi.sweep()
            known = [claim for uid, claim in checkpoint.claims.items() if uid not in checkpoint.from_newer_version]
            if self._use.metadata:
                self._use.metadata.sweep(checkpoint.claims.keys())
        log.info("%d claims are prepared", len(known))
        for claim in known:
            self._use.reports.prepared(claim, None)

    @property
    def prepared(self) -> int:
        """How many claims are prepared here."""
        return self._checkpoint.count()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Make a claim's devices ready. Asked again, it does all of it again and gives the same answer.

        Who has to wait for a lock may find that the caller has gone in the meantime, so that is asked where the lock is held.
        """
        with self._locks.hold(ref.uid):
            caller.check(ref.validated())
            claim, served = self._what_is_ours(ref, caller.patience())
            try:
                additions = self._lasting(claim, caller)
            except DeviceHeld as taken:
                raise ClaimRefused(stale_claims.explain(taken, self._use.read_claim, caller.patience)) from taken
            self._use.reports.prepared(claim, served)
        ids = [(self._cdi.qualified(addition.name),) for addition in additions]
        return tuple(map(PreparedDevice, claim.devices, ids))

    def unprepare(self, ref: ClaimRef) -> bool:
        """Give a claim's devices back; False when it was not prepared, which is no error. Only the UID counts."""
        if not matches(UID, ref.uid):
            return False
        with self._locks.hold(ref.uid):
            self._use.reports.released(ref.uid)
            with self._checkpoint.locked() as checkpoint:
                return self._release(checkpoint, ref.uid)

    def release(self, uid: str, *, force: bool = False) -> bool:
        """Unprepare a claim in the kubelet's place; refused while somebody may need it, unless it is forced. False as in `unprepare`."""
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(uid)
        if not (force or (known is None and not self._cdi.path(uid).exists())):
            stale_claims.check_stale(known.ref if known else ClaimRef(uid), self._use.read_claim)
        return self.unprepare(ClaimRef(uid))

    def devices_of(self, ref: ClaimRef) -> tuple[str, ...]:
        """The names of the devices that a claim has here, prepared or not; none where nobody can tell."""
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(ref.uid)
        try:
            found = known or self._allocated(ref, self._use.read_claim(ref.validated(), REQUEST_TIMEOUT))
        except (ApiError, ClaimRefused):
            return ()
        return tuple(device.device for device in found.devices)

    def _what_is_ours(self, ref: ClaimRef, patience: float) -> tuple[PreparedClaim, Object | None]:
        try:
            served = self._use.read_claim(ref, patience)
        except ApiError as lost:
            known = self._from_checkpoint(ref) if lost.status in {0, 429} or lost.status >= 500 else None
            if not known:
                raise ClaimRefused(f"claim {ref} cannot be read: {lost}") from lost
            log.warning("claim %s is prepared again from the checkpoint: %s", ref, lost)
            return known, None
        ours = self._allocated(ref, served)
        with claims.refuse_malformed(ref):
            said: Sequence[opaque_configuration.OpaqueConfig] = (
                opaque_configuration.read_configs(served, ref, self.name) if ours.devices else ()
            )
        ordered = self._use.config_order(said)
        return replace(ours, devices=tuple(self._configured(device, ordered) for device in ours.devices)), served

    def _allocated(self, ref: ClaimRef, served: Object) -> PreparedClaim:
        with claims.refuse_malformed(ref):
            return read_allocation(served, ref, self.name)

    def _from_checkpoint(self, ref: ClaimRef) -> PreparedClaim | None:
        """What the checkpoint has, if it has all: what was rebuilt from a CDI file knows neither name nor configuration."""
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(ref.uid)
        return known if known and known.ref == ref else None

    def _configured(
        self, device: AllocatedDevice, said: Sequence[opaque_configuration.OpaqueConfig]
    ) -> AllocatedDevice:
        found = self._use.inventory.find(device.pool, device.device)
        return opaque_configuration.apply_configs(device, said, is_network=found.network is not None)

    def _additions(self, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        """What containers get. All devices of a request come together, so the first brings the request's metadata."""
        mounts = self._use.metadata.write(claim, self._use.inventory.find) if self._use.metadata else {}
        return tuple(
            self._addition(claim.ref.uid, device, mounts.pop(device.base_request, None)) for device in claim.devices
        )

    def _addition(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        found = self._use.inventory.find(device.pool, device.device)
        edits = found.container_edits
        if mount:
            edits = {**edits, "mounts": [*edits.get("mounts", ()), mount]}
        home = self._use.inventory.pool
        return CdiDevice(cdi.device_name(uid, device, home), self._use.environment(found, device, home), edits)

    def _lasting(self, claim: PreparedClaim, caller: Caller) -> tuple[CdiDevice, ...]:
        """Commit a claim and wait for the disk. Of a new claim that the disk refuses nothing stays that a later start could adopt."""
        is_new = False
        try:
            with self._checkpoint.locked() as checkpoint:
                caller.check(claim.ref)
                is_new = claim.ref.uid not in checkpoint.claims
                return self._commit(checkpoint, claim)
        except OSError:
            if is_new:
                self._withdraw(claim.ref.uid)
            raise

    def _withdraw(self, uid: str) -> None:
        try:
            with self._checkpoint.locked() as checkpoint:
                if uid not in checkpoint.claims:
                    self._remove_files(uid)
        except OSError as stuck:
            log.warning("what was made for claim %s, which is not prepared, cannot be removed: %s", uid, stuck)

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        uid = claim.ref.uid
        if not claim.devices:
            self._release(checkpoint, uid)
            return ()
        problem = self._in_the_way(claim, checkpoint.claims)
        if problem:
            raise DeviceHeld(problem, self._holders(claim, checkpoint.claims))
        is_new = uid not in checkpoint.claims
        self._use.at_crash_point("before-checkpoint")
        checkpoint.save(claim)
        self._use.at_crash_point("after-checkpoint")
        try:
            additions = self._additions(claim)
            self._cdi.write(uid, additions)
        except Exception:  # a full disk, or a device that was unplugged a moment ago: a refused claim holds nothing
            if is_new:
                self._release(checkpoint, uid)
            raise
        self._use.at_crash_point("after-cdi")
        return additions

    def _in_the_way(self, claim: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return self._use.conflict(claim, others) or claims.counter_conflict(
            claim, others, self._use.inventory.consumption
        )

    def _holders(self, claim: PreparedClaim, others: Mapping[str, PreparedClaim]) -> list[ClaimRef]:
        """The other claims each of which alone is in the way."""
        return [other.ref for uid, other in others.items() if self._in_the_way(claim, {uid: other})]

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        had_file = self._remove_files(uid)
        known = uid in checkpoint.claims
        checkpoint.delete(uid)
        self._use.at_crash_point("after-checkpoint-removal")
        return known or had_file

    def _remove_files(self, uid: str) -> bool:
        """Remove what containers get; False when there was no CDI file."""
        self._use.at_crash_point("before-cdi-removal")
        had_file = self._cdi.remove(uid)
        self._use.at_crash_point("after-cdi-removal")
        if self._use.metadata:
            self._use.metadata.remove(uid)
        return had_file
