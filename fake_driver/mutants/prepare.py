"""Drivers that prepare at the wrong time, or answer something else than what they did."""

from __future__ import annotations

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
        raise ClaimRefused(f"claim {ref} was refused before: fault once-refused-always-refused")


class OnceRefusedAlwaysRefused(_RemembersRefusals):
    """A claim that was refused once is refused for ever, also when nothing stands in its way any more."""


class RefusesOnce(_RemembersRefusals):
    """A claim that was refused is taken for prepared when it is asked for again, without anything that is made ready."""

    def _again(self, _ref: ClaimRef) -> tuple[PreparedDevice, ...]:
        return ()


class RefusedClaimsStayPrepared(Driver):
    """A claim that is refused takes its devices all the same."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Refuse, and remember."""
        try:
            return super().prepare(ref, caller)
        except ClaimRefused:
            with self._checkpoint.locked() as checkpoint:
                checkpoint.save(read_allocation(self._read_claim(ref, caller.timeout()), ref, self.name))
            raise

    def unprepare(self, ref: ClaimRef) -> bool:
        """Whose CDI file is not there was never prepared, so there is nothing to do."""
        return self._cdi.path(ref.uid).exists() and super().unprepare(ref)


class OneClaimAtATime(Driver):
    """A node that has a claim prepared refuses every other one."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if checkpoint.claims.keys() - {claim.ref.uid}:
            raise ClaimRefused(f"claim {claim.ref} has to wait: fault one-claim-at-a-time")
        return super()._commit(checkpoint, claim)


class PrepareTwiceDifferently(Driver):
    """Asked a second time for the same claim, it answers with one device less."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._asked: set[str] = set()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Right the first time only."""
        answer = super().prepare(ref, caller)
        again = ref.uid in self._asked
        self._asked.add(ref.uid)
        return answer[1:] if again else answer


class RefusesWhatIsPrepared(Driver):
    """A claim can be prepared once; asked again, as a kubelet does that has started anew, it refuses."""

    def _commit(self, checkpoint: LockedCheckpoint, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if claim.ref.uid in checkpoint.claims:
            raise ClaimRefused(f"claim {claim.ref} is prepared already: fault refuses-what-is-prepared")
        return super()._commit(checkpoint, claim)


class FirstDeviceOnly(Driver):
    """Of several devices of a claim the answer has only the first."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave out the others."""
        return super().prepare(ref, caller)[:1]


class ForgetRequestNames(Driver):
    """The devices of a claim are answered under each other's requests."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Give each device the request of the one before it."""
        answer = super().prepare(ref, caller)
        requests = [each.device.request for each in answer]
        shifted = zip(answer, [*requests[-1:], *requests[:-1]], strict=True)
        return tuple(replace(each, device=replace(each.device, request=request)) for each, request in shifted)


class AnswerWithSubrequestNames(Driver):
    """Where a request has alternatives, its devices are answered under the name of the chosen one, which no container refers to."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Take the whole name for the request's."""
        return tuple(replace(each, device=_Whole(**vars(each.device))) for each in super().prepare(ref, caller))


class AnswerForTheWrongClaim(Driver):
    """The answer for a claim has what was prepared before it for another one, if there was one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._before: dict[str, tuple[PreparedDevice, ...]] = {}

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the right one, and hand out another."""
        answer = self._before[ref.uid] = super().prepare(ref, caller)
        return next((other for uid, other in self._before.items() if uid != ref.uid), answer)

    def unprepare(self, ref: ClaimRef) -> bool:
        """Rightly; what is gone is not handed out any more."""
        self._before.pop(ref.uid, None)
        return super().unprepare(ref)


class AnswerWithoutCdiIds(Driver):
    """All is made ready, but the kubelet is not told what to give to containers."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave out the ids."""
        return tuple(replace(each, cdi_ids=()) for each in super().prepare(ref, caller))


class AnswerWithAnotherDevice(Driver):
    """The containers get the right device, but the kubelet is told that it is the node's first."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Name another device."""
        first = self._collaborators.inventory.devices[0].name
        answer = super().prepare(ref, caller)
        return tuple(replace(each, device=replace(each.device, device=first, pool="nowhere")) for each in answer)


def answer_without_request_names(parts: Parts) -> Parts:
    """No device is tied to its request, so the environment leaks into containers that refer to another request of the claim."""
    return replace(parts, dra_service=_ForAllRequests)


def one_bad_claim_fails_all(parts: Parts) -> Parts:
    """Where one claim of a call is bad, none of the claims beside it is answered."""
    return replace(parts, dra_service=_AllOrNothing)


def answer_without_shares(parts: Parts) -> Parts:
    """The kubelet is not told which share of a device a claim has."""
    return replace(parts, dra_service=_WithoutShares)


class _Whole(AllocatedDevice):
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
    ForgetRequestNames,
    AnswerWithSubrequestNames,
    AnswerForTheWrongClaim,
    AnswerWithoutCdiIds,
    AnswerWithAnotherDevice,
    answer_without_request_names,
    answer_without_shares,
    one_bad_claim_fails_all,
)
