"""Drivers that misread claims: their identity, their devices, and which claims may have a device at the same time."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fake_driver.devices.model import CounterConsumption, Device
from fake_driver.errors import ClaimRefused
from fake_driver.preparing import claims
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.claims import ClaimRef, Object, PreparedClaim
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.preparing.inventory import Inventory
from fake_driver.roles.node_driver import Parts


class KnowClaimsByName(Driver):
    """A claim with the name of an earlier claim gets the answer for the earlier one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answers: dict[tuple[str, str], tuple[PreparedDevice, ...]] = {}

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Return the first answer for a claim of this name."""
        return self._answers.setdefault((ref.namespace, ref.name), super().prepare(ref, caller))


def make_up_devices(parts: Parts) -> Parts:
    """A device that does not exist is replaced by the first device of the node."""
    return _with_inventory(parts, _ReplaceUnknownDevices)


def know_devices_by_name(parts: Parts) -> Parts:
    """A device of another node is replaced by the device of this node with the same name."""
    return _with_inventory(parts, _IgnorePools)


def lost_devices_shift_names(parts: Parts) -> Parts:
    """Devices are counted: if one is lost, each name after it means the next device."""
    return _with_inventory(parts, _CountDevices)


class MisreadClaims(Driver, ABC):
    """A driver that alters each claim after it has read it; the base class of mutants."""

    def _read_claim(self, ref: ClaimRef, timeout: float) -> Object:
        return self._alter(super()._read_claim(ref, timeout), ref)

    @abstractmethod
    def _alter(self, claim: Object, ref: ClaimRef) -> Object:
        """Return the claim as the mutant reads it."""


class TakeDevicesOfOtherDrivers(MisreadClaims):
    """Devices that other drivers allocated to the claim are prepared as well."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(
            claim, "results", lambda results: [{**result, "driver": self.name} for result in results]
        )


class LeavesOutUnknownDevices(MisreadClaims):
    """Devices that the driver does not have are left out, and the rest of the claim is prepared."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(claim, "results", lambda results: [each for each in results if self._has(each)])

    def _has(self, result: Object) -> bool:
        try:
            self._collaborators.inventory.find(result["pool"], result["device"])
        except ClaimRefused:
            return bool(result["driver"] != self.name)
        return True


class RemembersTheFirstAllocation(MisreadClaims):
    """A claim that is allocated again is prepared with the devices of its first allocation."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first: dict[str, Object] = {}

    def _alter(self, claim: Object, ref: ClaimRef) -> Object:
        return self._first.setdefault(ref.uid, claim)


def prepares_busy_devices(parts: Parts) -> Parts:
    """A device is prepared for a claim although it is still prepared for another one."""
    return replace(parts, conflict=lambda _wanted, _others: "")


def forget_what_parts_share(parts: Parts) -> Parts:
    """A device and its partitions are treated as different hardware."""
    return _with_inventory(parts, _IgnoreCounters)


def admin_takes_device(parts: Parts) -> Parts:
    """Admin access holds a device like normal access, and is refused while another claim holds the device."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(
            _without_admin_access(wanted), {uid: _without_admin_access(other) for uid, other in others.items()}
        )

    return replace(parts, conflict=conflict)


def refuse_administrators(parts: Parts) -> Parts:
    """A claim with admin access is refused."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        if any(device.admin_access for device in wanted.devices):
            return f"claim {wanted.ref} asks for admin access: mutant refuse-administrators"
        return parts.conflict(wanted, others)

    return replace(parts, conflict=conflict)


def shares_exclude_each_other(parts: Parts) -> Parts:
    """A share of a device blocks the whole device for other claims."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(_without_share(wanted), {uid: _without_share(other) for uid, other in others.items()})

    return replace(parts, conflict=conflict)


class RefuseAlternatives(Driver):
    """A claim with a list of alternatives (firstAvailable) is refused."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Refuse a claim if a request has a slash in its name."""
        answer = super().prepare(ref, caller)
        if any("/" in each.device.request for each in answer):
            raise ClaimRefused(f"claim {ref} has an unknown request: mutant refuse-alternatives")
        return answer


def _with_inventory(parts: Parts, inventory: type[Inventory]) -> Parts:
    return replace(parts, inventory=inventory(parts.inventory.pool, parts.inventory.devices))


class _ReplaceUnknownDevices(Inventory):
    def find(self, pool: str, name: str) -> Device:
        try:
            return super().find(pool, name)
        except ClaimRefused:
            return self.devices[0]


class _IgnorePools(Inventory):
    def find(self, _pool: str, name: str) -> Device:
        return super().find(self.pool, name)


class _CountDevices(Inventory):
    def find(self, pool: str, name: str) -> Device:
        kind, _, number = name.rpartition("-")
        present = [each for each in self.devices if re.fullmatch(rf"{re.escape(kind)}-\d+", each.name)]
        found = super().find(pool, name)
        return present[int(number) % len(present)] if found in present else found


class _IgnoreCounters(Inventory):
    def consumption(self, _pool: str, _name: str) -> tuple[CounterConsumption, ...]:
        return ()


def _without_share(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, devices=tuple(replace(device, share_id=None) for device in claim.devices))


def _without_admin_access(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, devices=tuple(replace(device, admin_access=False) for device in claim.devices))


def alter_allocation(claim: Object, field: str, alter: Callable[[Sequence[Object]], Sequence[Object]]) -> Object:
    """Return the claim with a list of its allocation altered: `results` or `config`."""
    status = claim.get("status", {})
    allocation = status.get("allocation")
    if not allocation:
        return claim
    devices = {**allocation["devices"], field: alter(allocation["devices"].get(field) or ())}
    return {**claim, "status": {**status, "allocation": {**allocation, "devices": devices}}}


ALL = (
    KnowClaimsByName,
    make_up_devices,
    know_devices_by_name,
    lost_devices_shift_names,
    TakeDevicesOfOtherDrivers,
    LeavesOutUnknownDevices,
    RemembersTheFirstAllocation,
    prepares_busy_devices,
    forget_what_parts_share,
    admin_takes_device,
    refuse_administrators,
    shares_exclude_each_other,
    RefuseAlternatives,
)
