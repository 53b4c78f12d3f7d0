"""Drivers that refuse or prepare claims at the wrong time, or answer NodePrepareResources wrongly."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fake_driver.errors import ClaimRefused
from fake_driver.kubelet.dra_service import DraService
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.checkpoint import LockedCheckpoint
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim, read_allocation
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.roles.node_driver import Parts

_SECONDS_TO_START = 4.0


class _RemembersRefusals(Driver):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._refused: set[str] = set()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        if ref.uid in self._refused:
            return self._again(ref)
        try:
            return super().prepare(ref, caller)
        except ClaimRefused:
            self._refused.add(ref.uid)
            raise

    def _again(self, ref: ClaimRef) -> tuple[PreparedDevice, ...]:
        raise ClaimRefused(f"claim {ref} was refused before: mutant once-refused-always-refused")


class OnceRefusedAlwaysRefused(_RemembersRefusals):
    """A claim that was refused once is always refused, even after the conflict has ended."""


class RefusesOnce(_RemembersRefusals):
    """A refused claim is reported as prepared by the next call, although nothing is prepared."""

    def _again(self, _ref: ClaimRef) -> tuple[PreparedDevice, ...]:
        return ()


class RefusedClaimsStayPrepared(Driver):
    """A refused claim holds its devices."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Save a refused claim in the checkpoint."""
        try:
            return super().prepare(ref, caller)
        except ClaimRefused:
            with self._checkpoint.locked() as checkpoint:
                checkpoint.save(read_allocation(self._read_claim(ref, caller.timeout()), ref, self.name))
            raise

    def unprepare(self, ref: ClaimRef) -> bool:
        """Ignore a claim without a CDI file."""
        return self._cdi.path(ref.uid).exists() and super().unprepare(ref)


class OneClaimAtATime(Driver):
    """While a claim is prepared on the node, all other claims are refused."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if checkpoint.claims.keys() - {claim.ref.uid}:
            raise ClaimRefused(f"claim {claim.ref} has to wait: mutant one-claim-at-a-time")
        return super()._commit(checkpoint, claim)


class PrepareTwiceDifferently(Driver):
    """The second answer for the same claim lacks a device."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._prepared_before: set[str] = set()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave out the first device of a repeated answer."""
        answer = super().prepare(ref, caller)
        again = ref.uid in self._prepared_before
        self._prepared_before.add(ref.uid)
        return answer[1:] if again else answer


class RefusesWhatIsPrepared(Driver):
    """A claim that is prepared already is refused, for example after a restart of the kubelet."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if claim.ref.uid in checkpoint.claims:
            raise ClaimRefused(f"claim {claim.ref} is prepared already: mutant refuses-what-is-prepared")
        return super()._commit(checkpoint, claim)


class FirstDeviceOnly(Driver):
    """The answer has only the first device of a claim."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave out the other devices."""
        return super().prepare(ref, caller)[:1]


class AnswerWithoutDevices(Driver):
    """The answer has no devices, so that no CDI device is added to the container and PodResources names none."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim and answer with nothing."""
        super().prepare(ref, caller)
        return ()


class AnswersNothingWhileItStarts(Driver):
    """In its first seconds the driver answers without devices, because it has not found its hardware yet."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._started = time.monotonic()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim, and answer with nothing at first."""
        answer = super().prepare(ref, caller)
        return () if time.monotonic() - self._started < _SECONDS_TO_START else answer


class ForgetRequestNames(Driver):
    """The answer has each device under the request of another device."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Give each device the request of the one before it."""
        answer = super().prepare(ref, caller)
        requests = [each.device.request for each in answer]
        shifted = zip(answer, [*requests[-1:], *requests[:-1]], strict=True)
        return tuple(replace(each, device=replace(each.device, request=request)) for each, request in shifted)


class AnswerWithSubrequestNames(Driver):
    """The answer has the name of the chosen subrequest, which no container refers to, instead of the request."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Answer with the whole name of each request."""
        return tuple(
            replace(each, device=_WholeRequestName(**vars(each.device))) for each in super().prepare(ref, caller)
        )


class AnswerForTheWrongClaim(Driver):
    """The answer for a claim has the devices of a claim that was prepared before it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._before: dict[str, tuple[PreparedDevice, ...]] = {}

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim, and return the answer for another claim."""
        answer = self._before[ref.uid] = super().prepare(ref, caller)
        return next((other for uid, other in self._before.items() if uid != ref.uid), answer)

    def unprepare(self, ref: ClaimRef) -> bool:
        """Unprepare the claim, and drop its answer."""
        self._before.pop(ref.uid, None)
        return super().unprepare(ref)


class AnswerWithoutCdiIds(Driver):
    """The answer has no CDI IDs, so containers get no devices."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave out the CDI IDs."""
        return tuple(replace(each, cdi_ids=()) for each in super().prepare(ref, caller))


class AnswerWithAnotherDevice(Driver):
    """The answer names the first device of the node instead of the prepared device."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Name another device."""
        first = self._collaborators.inventory.devices[0].name
        answer = super().prepare(ref, caller)
        return tuple(replace(each, device=replace(each.device, device=first, pool="nowhere")) for each in answer)


def answer_without_request_names(parts: Parts) -> Parts:
    """The answer has no request names, so containers that refer to another request of the claim also get the device."""
    return replace(parts, dra_service=_ForAllRequests)


def one_bad_claim_fails_all(parts: Parts) -> Parts:
    """If one claim of a call is refused, all claims of the call are refused."""
    return replace(parts, dra_service=_AllOrNothing)


def answer_without_shares(parts: Parts) -> Parts:
    """The answer has no share IDs."""
    return replace(parts, dra_service=_WithoutShares)


class _WholeRequestName(AllocatedDevice):
    @property
    def base_request(self) -> str:
        return self.request


class _ForAllRequests(DraService):
    def _device(self, prepared: PreparedDevice) -> Any:
        device = super()._device(prepared)
        device.ClearField("request_names")
        return device


class _WithoutShares(DraService):
    def _device(self, prepared: PreparedDevice) -> Any:
        device = super()._device(prepared)
        device.ClearField("share_id")
        return device


class _AllOrNothing(DraService):
    def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - the name of the method on the wire
        response = super().NodePrepareResources(request, context)
        errors = [entry.error for entry in response.claims.values() if entry.error]
        for entry in response.claims.values() if errors else ():
            entry.ClearField("devices")
            entry.error = errors[0]
        return response


ALL = (
    OnceRefusedAlwaysRefused,
    RefusesOnce,
    RefusedClaimsStayPrepared,
    OneClaimAtATime,
    PrepareTwiceDifferently,
    RefusesWhatIsPrepared,
    FirstDeviceOnly,
    AnswerWithoutDevices,
    AnswersNothingWhileItStarts,
    ForgetRequestNames,
    AnswerWithSubrequestNames,
    AnswerForTheWrongClaim,
    AnswerWithoutCdiIds,
    AnswerWithAnotherDevice,
    answer_without_request_names,
    answer_without_shares,
    one_bad_claim_fails_all,
)
