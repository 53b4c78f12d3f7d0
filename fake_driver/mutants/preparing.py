"""Drivers that prepare and unprepare wrongly, each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_driver.api import PATIENCE
from fake_driver.cdi import CdiDevice
from fake_driver.checkpoint import Ledger
from fake_driver.claims import ClaimRef, PreparedClaim
from fake_driver.driver import Driver, Prepared
from fake_driver.errors import ClaimRefused

Answer = tuple[Prepared, ...]


class AnswerForTheWrongClaim(Driver):
    """The answer for a claim has what was prepared before it for another one, if there was one."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._before: dict[str, Answer] = {}

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Prepare the right one, and hand out another."""
        answer = self._before[ref.uid] = super().prepare(ref, patience)
        return next((other for uid, other in self._before.items() if uid != ref.uid), answer)

    def unprepare(self, ref: ClaimRef) -> bool:
        """Rightly; what is gone is not handed out any more."""
        self._before.pop(ref.uid, None)
        return super().unprepare(ref)


class WrongCdiNames(Driver):
    """The answer names CDI devices that no file on the node defines."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Misspell them."""
        return tuple(
            replace(each, cdi_ids=tuple(f"{one}x" for one in each.cdi_ids)) for each in super().prepare(ref, patience)
        )


class OneCdiFileForAll(Driver):
    """There is room for the CDI file of one claim: the next one's takes its place."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Leave only the file of this claim."""
        answer = super().prepare(ref, patience)
        for other in self._cdi.claims():
            if other != ref.uid:
                self._cdi.remove(other)
        return answer


class OneClaimAtATime(Driver):
    """A node that has a claim prepared refuses every other one."""

    def _commit(self, ledger: Ledger, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if ledger.claims.keys() - {claim.ref.uid}:
            raise ClaimRefused(f"claim {claim.ref} has to wait: fault one-claim-at-a-time")
        return super()._commit(ledger, claim)


class RefuseAlternatives(Driver):
    """A claim whose request was a list of alternatives is refused."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Refuse a request with a slash in its name."""
        answer = super().prepare(ref, patience)
        if any("/" in each.device.request for each in answer):
            raise ClaimRefused(f"claim {ref} has a request that is not known: fault refuse-alternatives")
        return answer


class PrepareTwiceDifferently(Driver):
    """Asked a second time for the same claim, it answers with one device less."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._asked: set[str] = set()

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Right the first time only."""
        answer = super().prepare(ref, patience)
        again = ref.uid in self._asked
        self._asked.add(ref.uid)
        return answer[1:] if again else answer


class ForgetTheCheckpoint(Driver):
    """What is prepared is remembered nowhere, so a restart, and a second claim for the same device, find nothing."""

    def _commit(self, ledger: Ledger, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        additions = super()._commit(ledger, claim)
        ledger.forget(claim.ref.uid)
        return additions


class UnprepareByName(Driver):
    """The claim to unprepare is looked for by namespace and name, so its successor of the same name loses its devices."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Take the newest claim of that name."""
        with self._checkpoint.locked() as ledger:
            named = [
                uid
                for uid, claim in ledger.claims.items()
                if (claim.ref.namespace, claim.ref.name) == (ref.namespace, ref.name)
            ]
        return super().unprepare(replace(ref, uid=named[-1]) if named else ref)


ALL = (
    AnswerForTheWrongClaim,
    WrongCdiNames,
    OneCdiFileForAll,
    OneClaimAtATime,
    RefuseAlternatives,
    PrepareTwiceDifferently,
    ForgetTheCheckpoint,
    UnprepareByName,
)
