"""Drivers that read a claim wrongly: its devices, who it is, and who may have them."""

from __future__ import annotations

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
    """A claim that has the name of an earlier one gets the earlier one's answer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answers: dict[tuple[str, str], tuple[PreparedDevice, ...]] = {}

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Answer from memory, where there is one."""
        return self._answers.setdefault((ref.namespace, ref.name), super().prepare(ref, caller))


def make_up_devices(parts: Parts) -> Parts:
    """A device that nobody knows is taken for the first one of the node."""
    return replace(parts, inventory=MakeUpDevices(parts.inventory.pool, parts.inventory.devices))


def know_devices_by_name(parts: Parts) -> Parts:
    """A device of another node is taken for the one that has its name here."""
    return replace(parts, inventory=KnowDevicesByName(parts.inventory.pool, parts.inventory.devices))


class MisreadClaims(Driver):
    """A driver that alters each claim after it has read it. Its subclasses are mutants."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        read = self._read_claim
        self._read_claim = lambda ref, timeout: self._alter(read(ref, timeout), ref)

    def _alter(self, claim: Object, ref: ClaimRef) -> Object:
        raise NotImplementedError


class TakeDevicesOfOtherDrivers(MisreadClaims):
    """Devices that a claim has from other drivers are prepared as well."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(
            claim, "results", lambda results: [{**result, "driver": self.name} for result in results]
        )


def prepares_busy_devices(parts: Parts) -> Parts:
    """Whoever comes gets a device, also one that another claim has."""
    return replace(parts, conflict=lambda _wanted, _others: "")


def forget_what_parts_share(parts: Parts) -> Parts:
    """A device and its parts are taken for different hardware."""
    return replace(parts, inventory=ForgetWhatPartsShare(parts.inventory.pool, parts.inventory.devices))


def admin_takes_device(parts: Parts) -> Parts:
    """Who only wants to look at a device takes it, or is refused because somebody uses it."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(_taking(wanted), {uid: _taking(other) for uid, other in others.items()})

    return replace(parts, conflict=conflict)


def refuse_administrators(parts: Parts) -> Parts:
    """A claim with admin access is not prepared."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        if any(device.admin_access for device in wanted.devices):
            return f"claim {wanted.ref} asks for admin access: fault refuse-administrators"
        return parts.conflict(wanted, others)

    return replace(parts, conflict=conflict)


def shares_exclude_each_other(parts: Parts) -> Parts:
    """One claim takes a shared device for itself."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(_whole(wanted), {uid: _whole(other) for uid, other in others.items()})

    return replace(parts, conflict=conflict)


class RefuseAlternatives(Driver):
    """A claim whose request was a list of alternatives is refused."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Refuse a request with a slash in its name."""
        answer = super().prepare(ref, caller)
        if any("/" in each.device.request for each in answer):
            raise ClaimRefused(f"claim {ref} has a request that is not known: fault refuse-alternatives")
        return answer


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


class ForgetWhatPartsShare(Inventory):
    """A device and its parts are taken for different hardware."""

    def consumption(self, _pool: str, _name: str) -> tuple[CounterConsumption, ...]:
        """Each device is for itself."""
        return ()


def _whole(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, devices=tuple(replace(device, share_id=None) for device in claim.devices))


def _taking(claim: PreparedClaim) -> PreparedClaim:
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
    TakeDevicesOfOtherDrivers,
    prepares_busy_devices,
    forget_what_parts_share,
    admin_takes_device,
    refuse_administrators,
    shares_exclude_each_other,
    RefuseAlternatives,
)
