"""The driver behind the DRA service: prepare and unprepare claims on one node.

prepare:    read the claim -> find this driver's devices and their configuration -> refuse conflicts -> write the checkpoint
            -> write device metadata and the CDI file -> answer; the device status is written later
unprepare:  remove the CDI file and device metadata -> remove the checkpoint; needs neither the API server nor the claim
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.devices.model import Device
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.name_patterns import UID, matches
from fake_driver.preparing import cdi, claims, opaque_configuration, stale_claims
from fake_driver.preparing.accepted_claims import Rule
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice, CdiFolder, Environment
from fake_driver.preparing.checkpoint import Checkpoint, LockedCheckpoint
from fake_driver.preparing.claim_locks import ClaimLocks
from fake_driver.preparing.claims import AllocatedDevice, ClaimReader, ClaimRef, Object, PreparedClaim, read_allocation
from fake_driver.preparing.device_metadata import MetadataFolder
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.opaque_configuration import OpaqueConfig
from fake_driver.preparing.stale_claims import DeviceHeld

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedDevice:
    """One device in the answer to NodePrepareResources."""

    device: AllocatedDevice
    cdi_ids: tuple[str, ...]


class StatusUpdates(Protocol):
    """The receiver of prepared and released claims, which reports their device status. Its methods return at once."""

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """Report the status of a prepared claim; `served` is the claim as the API server returned it, if it was just read."""

    def released(self, uid: str) -> None:
        """Stop reporting the status of a claim that is no longer prepared."""


class NoStatusUpdates:
    """Status updates that are not reported."""

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """Do nothing."""

    def released(self, uid: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Collaborators:
    """What the driver decides with. A mutant replaces one of the fields."""

    inventory: Inventory
    environment: Callable[[Device, AllocatedDevice, str], Environment] = cdi.environment
    config_order: opaque_configuration.Precedence = opaque_configuration.by_precedence
    conflict: Callable[[PreparedClaim, Mapping[str, PreparedClaim]], str] = claims.conflict
    accepted: Sequence[Rule] = ()
    at_crash_point: Callable[[str], None] = lambda _point: None


@dataclass(frozen=True)
class NodeFiles:
    """What the driver writes on its node."""

    checkpoint: Checkpoint
    cdi: CdiFolder
    metadata: MetadataFolder


class Driver:
    """One driver on one node."""

    def __init__(
        self,
        name: str,
        collaborators: Collaborators,
        files: NodeFiles,
        claims: ClaimReader,
        status_updates: StatusUpdates,
    ) -> None:
        self.name, self._collaborators = name, collaborators
        self._checkpoint, self._cdi, self._metadata = files.checkpoint, files.cdi, files.metadata
        self._claims, self._status_updates = claims, status_updates
        self._locks = ClaimLocks()

    def recover(self) -> None:
        """Clean up after a killed process and rebuild lost checkpoints. Call it once, before the first claim."""
        self._checkpoint.recover(self._cdi.claims())
        with self._checkpoint.locked() as checkpoint:
            self._cdi.sweep()
            prepared = [claim for uid, claim in checkpoint.claims.items() if uid not in checkpoint.from_newer_version]
            self._metadata.sweep(checkpoint.claims.keys())
        log.info("%d claims are prepared", len(prepared))
        for claim in prepared:
            self._status_updates.prepared(claim, None)

    @property
    def prepared(self) -> int:
        """Return how many claims are prepared on this node."""
        return self._checkpoint.count()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim's devices and return them. A repeated call does everything again and returns the same.

        The caller may have gone while this call waited for a lock. Therefore it is checked while the lock is held.
        """
        with self._locks.hold(ref.uid):
            caller.check(ref.validated())
            claim, served = self._claim_to_prepare(ref, caller.timeout())
            self._check_accepted(claim)
            try:
                cdi_devices = self._commit_durably(claim, caller)
            except DeviceHeld as held:
                raise ClaimRefused(stale_claims.explain(held, self._read_claim, caller.timeout)) from held
            self._status_updates.prepared(claim, served)
        ids = [(self._cdi.qualified_name(each.name),) for each in cdi_devices]
        return tuple(map(PreparedDevice, claim.devices, ids))

    def unprepare(self, ref: ClaimRef) -> bool:
        """Unprepare the claim with this UID. Return False if it was not prepared, which is no error."""
        if not matches(UID, ref.uid):
            return False
        with self._locks.hold(ref.uid):
            self._status_updates.released(ref.uid)
            with self._checkpoint.locked() as checkpoint:
                return self._release(checkpoint, ref.uid)

    def release(self, uid: str, *, force: bool = False) -> bool:
        """Unprepare a stale claim on behalf of the kubelet. Return False if it was not prepared.

        Raise ClaimRefused if the claim may still be needed, unless `force` is True.
        """
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(uid)
        if not (force or (known is None and not self._cdi.path(uid).exists())):
            stale_claims.check_stale(known.ref if known else ClaimRef(uid), self._read_claim)
        return self.unprepare(ClaimRef(uid))

    def devices_of(self, ref: ClaimRef) -> tuple[str, ...]:
        """Return the names of the devices that are prepared for the claim or allocated to it; none if it cannot be read."""
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(ref.uid)
        try:
            found = known or self._read_allocation(ref, self._read_claim(ref.validated(), REQUEST_TIMEOUT))
        except (ApiError, ClaimRefused):
            return ()
        return tuple(device.device for device in found.devices)

    def _claim_to_prepare(self, ref: ClaimRef, timeout: float) -> tuple[PreparedClaim, Object | None]:
        """Return the claim with its configured devices, and the object from the API server.

        While the API server is unavailable, return a claim that is prepared already from the checkpoint.
        """
        try:
            served = self._read_claim(ref, timeout)
        except ApiError as unread:
            known = self._from_checkpoint(ref) if unread.status in {0, 429} or unread.status >= 500 else None
            if not known:
                raise ClaimRefused(f"claim {ref} cannot be read: {unread}") from unread
            log.warning("claim %s is prepared again from the checkpoint: %s", ref, unread)
            return known, None
        claim = self._read_allocation(ref, served)
        with claims.refuse_malformed(ref):
            configs = opaque_configuration.read_configs(served, ref, self.name) if claim.devices else []
        ordered = self._collaborators.config_order(configs)
        return replace(claim, devices=tuple(self._configure(device, ordered) for device in claim.devices)), served

    def _check_accepted(self, claim: PreparedClaim) -> None:
        """Raise ClaimRefused if a rule of this driver does not accept the claim."""
        inventory = self._collaborators.inventory
        problems = [problem for rule in self._collaborators.accepted if (problem := rule(claim, inventory))]
        if problems:
            raise ClaimRefused(f"claim {claim.ref} is not accepted: {'; '.join(problems)}")

    def _read_claim(self, ref: ClaimRef, timeout: float) -> Object:
        return self._claims.get(ref.namespace, ref.name, timeout)

    def _read_allocation(self, ref: ClaimRef, served: Object) -> PreparedClaim:
        with claims.refuse_malformed(ref):
            return read_allocation(served, ref, self.name)

    def _from_checkpoint(self, ref: ClaimRef) -> PreparedClaim | None:
        """Return the claim from the checkpoint; None for one that was rebuilt from a CDI file, which has no name and configuration."""
        with self._checkpoint.locked() as checkpoint:
            known = checkpoint.claims.get(ref.uid)
        return known if known and known.ref == ref else None

    def _configure(self, allocated: AllocatedDevice, configs: Sequence[OpaqueConfig]) -> AllocatedDevice:
        device = self._collaborators.inventory.find(allocated.pool, allocated.device)
        return opaque_configuration.apply_configs(allocated, configs, is_network=device.network is not None)

    def _cdi_devices(self, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        """Write the claim's metadata and return its CDI devices. The first device of each request mounts the request's metadata."""
        mounts = self._metadata.write(claim, self._collaborators.inventory.find)
        return tuple(
            self._cdi_device(claim.ref.uid, device, mounts.pop(device.base_request, None)) for device in claim.devices
        )

    def _cdi_device(self, uid: str, allocated: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        device = self._collaborators.inventory.find(allocated.pool, allocated.device)
        edits = device.container_edits
        if mount:
            edits = {**edits, "mounts": [*edits.get("mounts", ()), mount]}
        node_pool = self._collaborators.inventory.pool
        variables = self._collaborators.environment(device, allocated, node_pool)
        return CdiDevice(cdi.device_name(uid, allocated, node_pool), variables, edits)

    def _commit_durably(self, claim: PreparedClaim, caller: Caller) -> tuple[CdiDevice, ...]:
        """Commit a claim and sync it to disk. If that fails for a new claim, remove all its files: a restart must not adopt it."""
        is_new = False
        try:
            with self._checkpoint.locked() as checkpoint:
                caller.check(claim.ref)
                is_new = claim.ref.uid not in checkpoint.claims
                return self._commit(checkpoint, claim)
        except OSError:
            if is_new:
                self._roll_back(claim.ref.uid)
            raise

    def _roll_back(self, uid: str) -> None:
        try:
            with self._checkpoint.locked() as checkpoint:
                if uid not in checkpoint.claims:
                    self._remove_files(uid)
        except OSError as failed:
            log.warning("the files of claim %s, which was refused, cannot be removed: %s", uid, failed)

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        uid = claim.ref.uid
        if not claim.devices:
            self._release(checkpoint, uid)
            return ()
        problem = self._conflict(claim, checkpoint.claims)
        if problem:
            raise DeviceHeld(problem, self._holders(claim, checkpoint.claims))
        is_new = uid not in checkpoint.claims
        self._collaborators.at_crash_point("before-checkpoint")
        checkpoint.save(claim)
        self._collaborators.at_crash_point("after-checkpoint")
        try:
            cdi_devices = self._cdi_devices(claim)
            self._cdi.write(uid, cdi_devices)
        except Exception:  # the disk is full, or a device was unplugged meanwhile: a refused claim must hold no device
            if is_new:
                self._release(checkpoint, uid)
            raise
        self._collaborators.at_crash_point("after-cdi")
        return cdi_devices

    def _conflict(self, claim: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        """Describe why the claim cannot be prepared beside the others; '' if it can."""
        consumption = self._collaborators.inventory.consumption
        return self._collaborators.conflict(claim, others) or claims.counter_conflict(claim, others, consumption)

    def _holders(self, claim: PreparedClaim, others: Mapping[str, PreparedClaim]) -> list[ClaimRef]:
        """Return the other claims that conflict with the claim on their own."""
        return [other.ref for uid, other in others.items() if self._conflict(claim, {uid: other})]

    def _release(self, checkpoint: LockedCheckpoint, uid: str) -> bool:
        had_file = self._remove_files(uid)
        was_prepared = uid in checkpoint.claims
        checkpoint.delete(uid)
        self._collaborators.at_crash_point("after-checkpoint-removal")
        return was_prepared or had_file

    def _remove_files(self, uid: str) -> bool:
        """Remove the claim's CDI file and metadata. Return False if there was no CDI file."""
        self._collaborators.at_crash_point("before-cdi-removal")
        had_file = self._cdi.remove(uid)
        self._collaborators.at_crash_point("after-cdi-removal")
        self._metadata.remove(uid)
        return had_file
