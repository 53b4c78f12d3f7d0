"""Drivers that do nothing, each in another way. The whole catalogue runs on them: a requirement that one of them meets needs a reason."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import grpc

from fake_driver.errors import ClaimRefused
from fake_driver.kubelet.dra_service import DraService
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.claims import ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.roles.node_driver import Parts


def registers_only(parts: Parts) -> Parts:
    """The driver registers and does nothing else: it publishes no slices and never answers NodePrepareResources."""
    return replace(parts, publishes=False, writes_status=False, dra_service=_NeverPrepares)


class RefusesEverything(Driver):
    """The driver registers and publishes its slices, but refuses to prepare any claim."""

    def prepare(self, ref: ClaimRef, _caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Refuse the claim."""
        raise ClaimRefused(f"claim {ref} is refused: mutant refuses-everything")


class OnlyAnswers(Driver):
    """The driver registers, publishes its slices and answers every call with success, but does nothing on the node."""

    def prepare(self, _ref: ClaimRef, _caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Return no devices."""
        return ()

    def unprepare(self, _ref: ClaimRef) -> bool:
        """Do nothing."""
        return False


class _NeverPrepares(DraService):
    """Answers Unprepare: clean-up that hangs would hide that a test passed."""

    def NodePrepareResources(self, _request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the name of the method on the wire
        over = threading.Event()
        if context.add_callback(over.set):  # False if the call has ended already
            over.wait()
        context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "mutant registers-only")


ALL = (registers_only, RefusesEverything, OnlyAnswers)
