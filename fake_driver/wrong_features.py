"""Ways to be wrong in optional parts of DRA: taints, counters, shared devices, binding conditions, health. `faults` knows them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fake_driver import claims
from fake_driver.cdi import CdiDevice
from fake_driver.claims import PreparedClaim
from fake_driver.driver import Driver
from fake_driver.health import UNKNOWN, Health
from fake_driver.opaque import Config
from fake_driver.slices import Object
from fake_driver.wiring import Parts


def taints_missing(right: Parts) -> Parts:
    """Devices that nobody should use look like all others."""
    return _without(right, "taints")


def counters_missing(right: Parts) -> Parts:
    """A device and its parts look as if they had nothing in common."""
    return _without(right, "consumesCounters")


def counters_of_nobody(right: Parts) -> Parts:
    """Devices draw from counters that are nowhere published."""

    def others(device: Object) -> Object:
        draws = [{**draw, "counterSet": "nobodys"} for draw in device.get("consumesCounters", ())]
        return {**device, "consumesCounters": draws} if draws else device

    return _with_devices(right, others)


def sharing_missing(right: Parts) -> Parts:
    """Devices that several claims may have look as if one claim took all of them."""
    return _without(policies_missing(right), "allowMultipleAllocations")


def policies_missing(right: Parts) -> Parts:
    """Nobody says how much of a shared device a claim may have."""

    def plain(device: Object) -> Object:
        amounts = {name: {"value": each["value"]} for name, each in device.get("capacity", {}).items()}
        return {**device, "capacity": amounts} if amounts else device

    return _with_devices(right, plain)


def binding_conditions_missing(right: Parts) -> Parts:
    """Pods start before their devices are attached, because nothing says that they have to wait."""
    return _without(right, "bindingConditions", "bindingFailureConditions")


def shares_exclude_each_other(right: Parts) -> Parts:
    """One claim takes a shared device for itself."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(_whole(wanted), {uid: _whole(other) for uid, other in others.items()})

    return replace(right, conflict=conflict)


def ignores_config_of_subrequests(right: Parts) -> Parts:
    """What is said of one alternative alone is not heard."""

    def in_order(found: Sequence[Config]) -> Sequence[Config]:
        return right.in_order([one for one in found if not any("/" in request for request in one.requests)])

    return replace(right, in_order=in_order)


def health_unknown(right: Parts) -> Parts:
    """Nobody learns how the devices are."""
    return replace(right, health=lambda _device: Health(UNKNOWN))


def health_always_well(right: Parts) -> Parts:
    """Broken devices are said to be well."""
    return replace(right, health=lambda _device: Health())


def health_without_words(right: Parts) -> Parts:
    """Nobody learns why a device is not well."""
    return replace(right, health=lambda device: replace(right.health(device), message=""))


class _NoMounts(Driver):
    def _addition(self, *of: Any) -> CdiDevice:
        right = super()._addition(*of)
        return replace(right, edits={key: edit for key, edit in right.edits.items() if key != "mounts"})


def mounts_missing(right: Parts) -> Parts:
    """Files that containers should have are not mounted into them."""
    return replace(right, driver=_NoMounts)


WRONG_FEATURES = (
    taints_missing,
    counters_missing,
    counters_of_nobody,
    sharing_missing,
    policies_missing,
    binding_conditions_missing,
    shares_exclude_each_other,
    ignores_config_of_subrequests,
    health_unknown,
    health_always_well,
    health_without_words,
    mounts_missing,
)


def _without(right: Parts, *fields: str) -> Parts:
    return _with_devices(right, lambda device: {key: value for key, value in device.items() if key not in fields})


def _with_devices(right: Parts, change: Callable[[Object], Object]) -> Parts:
    """What is published of each device is changed; the device itself stays what it is."""

    def one(slice_: Object) -> Object:
        spec = slice_["spec"]
        return {**slice_, "spec": {**spec, "devices": [change(device) for device in spec["devices"]]}}

    def shaped(wanted: list[Object]) -> list[Object]:
        return [one(each) if each["spec"].get("devices") else each for each in right.shaped(wanted)]

    return replace(right, shaped=shaped)


def _whole(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, devices=tuple(replace(device, share_id=None) for device in claim.devices))
