"""The servicers behind the sockets, thin: DRA in two versions, and registration. The server hands them to gRPC.

They turn messages into calls of the driver's verbs and back; here the errors of one claim end, as the text of its entry.
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
_FOR_THE_API = 0.8  # of the caller's time; the rest is for the disk and the way back


class DraService:
    """NodePrepareResources and NodeUnprepareResources of one API version; `messages` is the module of its messages."""

    def __init__(self, driver: Driver, journal: Journal, messages: ModuleType, armed_faults: ArmedFaults) -> None:
        self._driver, self._journal, self._messages, self._armed_faults = driver, journal, messages, armed_faults
        self._has_shares = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the name of the method on the wire
        """An entry for each claim: its devices, or what went wrong with it."""
        response = self._messages.NodePrepareResourcesResponse()
        refs = _claims(request)
        failing = self._met("prepare", refs, context)
        for done, ref in enumerate(refs):
            entry = response.claims[ref.uid]
            with self._noted("prepare", ref, entry) as facts:
                _fail(ref, failing)
                prepared = self._driver.prepare(ref, _caller(context, len(refs) - done))
                entry.devices.extend(self._device(device) for device in prepared)
                facts["devices"] = [one.device.device for one in prepared]
        return response

    def NodeUnprepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the name of the method on the wire
        """An entry for each claim, also for those that nobody ever prepared."""
        response = self._messages.NodeUnprepareResourcesResponse()
        refs = _claims(request)
        failing = self._met("unprepare", refs, context)
        for ref in refs:
            with self._noted("unprepare", ref, response.claims[ref.uid]) as facts:
                _fail(ref, failing)
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
        if allocated.share_id is not None and self._has_shares:
            device.share_id = allocated.share_id
        return device

    def _met(self, call: str, refs: list[ClaimRef], context: grpc.ServicerContext) -> Mapping[str, str]:
        """What a fault that somebody armed does to the call."""
        try:
            return self._armed_faults.apply(call, refs, self._driver.devices_of, context)
        except FaultTriggered as sprung:
            self._journal.record(call, claims=[ref.uid for ref in refs], code=sprung.code.name, error=str(sprung))
            context.abort(sprung.code, str(sprung))

    @contextlib.contextmanager
    def _noted(self, verb: str, ref: ClaimRef, entry: Any) -> Iterator[dict[str, Any]]:
        """Time and note what is done for one claim; its errors end here, as the text of its entry."""
        facts: dict[str, Any] = {}
        began = time.perf_counter()
        try:
            yield facts
        except (DriverError, OSError) as refused:
            entry.error = str(refused)
        except Exception as broken:  # one claim's error never costs the answers of the claims beside it
            log.exception("%s of claim %s", verb, ref)
            entry.error = f"the driver has an error of its own: {broken!r}"
        if entry.error:
            facts["error"] = entry.error
        self._journal.record(verb, claim=ref.name, namespace=ref.namespace, uid=ref.uid, **facts, seconds=_since(began))


def _fail(ref: ClaimRef, failing: Mapping[str, str]) -> None:
    if ref.uid in failing:
        raise ClaimRefused(failing[ref.uid])


def _claims(request: Any) -> list[ClaimRef]:
    """The claims of a request, each UID once."""
    return list({claim.uid: ClaimRef(claim.uid, claim.namespace, claim.name) for claim in request.claims}.values())


def _caller(context: grpc.ServicerContext, claims: int) -> Caller:
    """Who made a call, for the first of the claims that are left in it."""
    return Caller(context.is_active, lambda: _share(context.time_remaining(), claims))


def _share(remaining: float | None, claims: int) -> float:
    """How long one claim may wait for the API server, when the caller waits so long for all: an error in time beats an answer too late."""
    return REQUEST_TIMEOUT if remaining is None else min(REQUEST_TIMEOUT, remaining * _FOR_THE_API / claims)


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 6)
