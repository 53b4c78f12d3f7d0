"""The gRPC service DRAPlugin: it converts messages to calls of the driver and back.

The errors of a claim end here, as the error text of the claim's entry in the response.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import grpc

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ClaimRefused, DriverError
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults, FaultTriggered
from fake_driver.preparing.caller import Caller
from fake_driver.preparing.claims import ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice

log = logging.getLogger(__name__)
_API_SHARE = 0.8  # of the remaining time of a call; the rest is for the disk and the response


class DraService:
    """The servicer of one API version, whose messages are in the module `messages`."""

    def __init__(self, driver: Driver, journal: Journal, messages: ModuleType, armed_faults: ArmedFaults) -> None:
        self._driver, self._journal, self._messages, self._armed_faults = driver, journal, messages, armed_faults
        self._has_share_id = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the name of the method on the wire
        """Prepare each claim; return its devices or its error."""
        response = self._messages.NodePrepareResourcesResponse()
        refs = _claims(request)
        errors = self._apply_armed_faults("prepare", refs, context)
        for done, ref in enumerate(refs):
            entry = response.claims[ref.uid]
            with self._recorded("prepare", ref, entry) as facts:
                _raise_error(ref, errors)
                prepared = self._driver.prepare(ref, _caller(context, len(refs) - done))
                entry.devices.extend(self._device(device) for device in prepared)
                facts["devices"] = [one.device.device for one in prepared]
        return response

    def NodeUnprepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the name of the method on the wire
        """Unprepare each claim. A claim that was never prepared also gets an entry without an error."""
        response = self._messages.NodeUnprepareResourcesResponse()
        refs = _claims(request)
        errors = self._apply_armed_faults("unprepare", refs, context)
        for ref in refs:
            with self._recorded("unprepare", ref, response.claims[ref.uid]) as facts:
                _raise_error(ref, errors)
                facts["was_prepared"] = self._driver.unprepare(ref)
        return response

    def _device(self, prepared: PreparedDevice) -> Any:
        allocated = prepared.device
        device = self._messages.Device(
            request_names=[allocated.base_request],
            pool_name=allocated.pool,
            device_name=allocated.device,
            cdi_device_ids=prepared.cdi_ids,
        )
        if allocated.share_id is not None and self._has_share_id:
            device.share_id = allocated.share_id
        return device

    def _apply_armed_faults(self, call: str, refs: list[ClaimRef], context: grpc.ServicerContext) -> Mapping[str, str]:
        """Apply an armed fault to the call. Return the errors of claims by UID, or abort the call."""
        try:
            return self._armed_faults.apply(call, refs, self._driver.devices_of, context)
        except FaultTriggered as fault:
            self._journal.record(call, claims=[ref.uid for ref in refs], code=fault.code.name, error=str(fault))
            context.abort(fault.code, str(fault))

    @contextlib.contextmanager
    def _recorded(self, call: str, ref: ClaimRef, entry: Any) -> Iterator[dict[str, Any]]:
        """Record the duration and the result of one claim in the journal, and put its error into its entry."""
        facts: dict[str, Any] = {}
        began = time.perf_counter()
        try:
            yield facts
        except (DriverError, OSError) as refused:
            entry.error = str(refused)
        except Exception as error:  # an error of one claim must not affect the other claims of the call
            log.exception("internal error during %s of claim %s", call, ref)
            entry.error = f"internal error of the driver: {error!r}"
        if entry.error:
            facts["error"] = entry.error
        self._journal.record(call, claim=ref.name, namespace=ref.namespace, uid=ref.uid, **facts, seconds=_since(began))


def _raise_error(ref: ClaimRef, errors: Mapping[str, str]) -> None:
    if ref.uid in errors:
        raise ClaimRefused(errors[ref.uid])


def _claims(request: Any) -> list[ClaimRef]:
    """Return the claims of a request without duplicate UIDs."""
    return list({claim.uid: ClaimRef(claim.uid, claim.namespace, claim.name) for claim in request.claims}.values())


def _caller(context: grpc.ServicerContext, remaining_claims: int) -> Caller:
    """Return the caller for the next claim, if so many claims of the call remain."""
    return Caller(context.is_active, lambda: _api_timeout(context.time_remaining(), remaining_claims))


def _api_timeout(remaining: float | None, claims: int) -> float:
    """Return how long one claim may wait for the API server, so that the response, with its errors, is not too late for the caller."""
    return REQUEST_TIMEOUT if remaining is None else min(REQUEST_TIMEOUT, remaining * _API_SHARE / claims)


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 6)
