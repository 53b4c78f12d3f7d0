"""Drivers that come to grief when a kubelet, a node or they themselves start again. `faults` knows them by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fake_driver.api import PATIENCE
from fake_driver.cdi import CdiDevice
from fake_driver.checkpoint import Ledger
from fake_driver.claims import ClaimRef, PreparedClaim
from fake_driver.driver import Driver, Prepared
from fake_driver.errors import ClaimRefused, DriverError
from fake_driver.planning import Plan
from fake_driver.slices import Object
from fake_driver.wiring import Parts


def registers_once(right: Parts) -> Parts:
    """Says only to the first kubelet who it is; when that starts again, it gets no answer."""
    asked: list[bool] = []

    def answer() -> None:
        if asked:
            raise DriverError("fault registers-once")
        asked.append(True)

    return replace(right, asked=answer)


def leaves_its_lock_behind(right: Parts) -> Parts:
    """A file in the data folder keeps a second process from registering, also when the first has long ended."""
    lock = right.data / "lock-left-behind"
    taken = lock.exists()
    lock.touch()
    return replace(right, registers=right.registers and not taken)


def deleted_slices_stay_away(right: Parts) -> Parts:
    """Once the slices are written, nobody looks after them."""
    done: list[bool] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        found = Plan() if done else right.plan(wanted, existing, accepted)
        if not found:
            done.append(True)
        return found

    return replace(right, plan=plan)


def publishes_from_scratch(right: Parts) -> Parts:
    """A new process deletes the slices of the one before it, and makes the same again."""
    first: list[set[str]] = []

    def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
        there = list(existing)
        if not first:
            first.append({each["metadata"]["uid"] for each in there})
        old = tuple(each for each in there if each["metadata"]["uid"] in first[0])
        found = right.plan(wanted, [each for each in there if each not in old], accepted)
        return replace(found, delete=(*old, *found.delete))

    return replace(right, plan=plan)


class StartsClean(Driver):
    """A new process removes what an earlier one has prepared, though its pods run."""

    def recover(self) -> None:
        """Recover, and forget it all."""
        super().recover()
        with self._checkpoint.locked() as ledger:
            for uid in tuple(ledger.claims):
                self._release(ledger, uid)


class UnpreparesOnlyItsOwn(Driver):
    """What another process has prepared, an older version for example, is refused and stays prepared."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._own: set[str] = set()

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> tuple[Prepared, ...]:
        """Remember whose it is."""
        answer = super().prepare(ref, patience)
        self._own.add(ref.uid)
        return answer

    def _release(self, ledger: Ledger, uid: str) -> bool:
        if uid in ledger.claims and uid not in self._own:
            raise ClaimRefused(f"claim {uid} was prepared by another process: fault unprepares-only-its-own")
        return super()._release(ledger, uid)


class TrustsItsCheckpoint(Driver):
    """What is in the checkpoint is taken for done, though its CDI file may be gone."""

    def _commit(self, ledger: Ledger, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        return self._additions(claim) if claim.ref.uid in ledger.claims else super()._commit(ledger, claim)


class RefusesWhatIsPrepared(Driver):
    """A claim can be prepared once; asked again, as a kubelet does that has started anew, it refuses."""

    def _commit(self, ledger: Ledger, claim: PreparedClaim) -> tuple[CdiDevice, ...]:
        if claim.ref.uid in ledger.claims:
            raise ClaimRefused(f"claim {claim.ref} is prepared already: fault refuses-what-is-prepared")
        return super()._commit(ledger, claim)
