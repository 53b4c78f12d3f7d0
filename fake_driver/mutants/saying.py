"""Wrong ways to read a claim, to judge it, and to tell containers and others what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fake_driver.claims import AllocatedDevice, Object, PreparedClaim
from fake_driver.driver import Driver, Prepared
from fake_driver.hardware.model import Device
from fake_driver.services import DraService
from fake_driver.wiring import Parts


def no_env_for_administrators(right: Parts) -> Parts:
    """A container with admin access starts, but nothing in it names a device."""

    def environment(device: Device, use: AllocatedDevice) -> Mapping[str, str]:
        return {"FAKE_DRIVER_FAULT": "no-env"} if use.admin_access else right.environment(device, use)

    return replace(right, environment=environment)


def refuse_administrators(right: Parts) -> Parts:
    """A claim with admin access is not prepared."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        if any(device.admin_access for device in wanted.devices):
            return f"claim {wanted.ref} asks for admin access: fault refuse-administrators"
        return right.conflict(wanted, others)

    return replace(right, conflict=conflict)


def status_says_not_ready(right: Parts) -> Parts:
    """Of devices that are prepared the status says that they are not ready."""

    def known(device: Device, use: AllocatedDevice) -> dict[str, Any]:
        when = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        wrong = {"type": "Ready", "status": "False", "reason": "Fault", "message": "fault status-says-not-ready"}
        return {**right.known(device, use), "conditions": [{**wrong, **when}]}

    return replace(right, known=known)


def take_devices_of_other_drivers(right: Parts) -> Parts:
    """Devices that a claim has from other drivers are prepared as well."""
    return replace(right, driver=_reading(right.driver, _as_ours_in_results))


def one_bad_claim_fails_all(right: Parts) -> Parts:
    """Where one claim of a call is bad, none of the claims beside it is answered."""
    return replace(right, service=_AllOrNothing)


def answer_without_request_names(right: Parts) -> Parts:
    """No device is tied to its request, so the environment leaks into containers that refer to another request of the claim."""
    return replace(right, service=_ForAllRequests)


class _ForAllRequests(DraService):
    def _device(self, prepared: Prepared) -> Any:
        device = super()._device(prepared)
        device.ClearField("request_names")
        return device


class _AllOrNothing(DraService):
    def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the name of the method on the wire
        response = super().NodePrepareResources(request, context)
        errors = [entry.error for entry in response.claims.values() if entry.error]
        for entry in response.claims.values() if errors else ():
            entry.ClearField("devices")
            entry.error = errors[0]
        return response


def _reading(driver: type[Driver], believed: Any) -> type[Driver]:
    class Reading(driver):  # type: ignore[misc, valid-type]  # a class that is known only here
        def __init__(self, name: str, use: Any, *others: Any) -> None:
            wrong = replace(use, read_claim=lambda ref, patience: believed(use.read_claim(ref, patience), name))
            super().__init__(name, wrong, *others)

    return Reading


def _as_ours_in_results(claim: Object, name: str) -> Object:
    return _with(claim, results=[{**one, "driver": name} for one in _devices(claim).get("results", ())])


def _devices(claim: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = claim.get("status", {}).get("allocation", {}).get("devices", {})
    return found


def _with(claim: Object, **changed: Any) -> Object:
    status = claim.get("status", {})
    allocation = status.get("allocation")
    if not allocation:
        return claim
    return {**claim, "status": {**status, "allocation": {**allocation, "devices": {**_devices(claim), **changed}}}}


ALL = (
    no_env_for_administrators,
    refuse_administrators,
    status_says_not_ready,
    take_devices_of_other_drivers,
    one_bad_claim_fails_all,
    answer_without_request_names,
)
