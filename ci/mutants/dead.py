"""Drivers that do nothing, and a cluster in which no test pod starts: what may pass on them. Pure, for the rest of ci.mutants.

A requirement about the driver that passes there is not met: its test passes for the wrong reason, or dead.yaml says why it may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ci.mutants import known
from ci.mutants.matrix import Key, MutantResult, Plan
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.models.requirement_enums import Subject, Verdict
from testbed.models.strict import Strict, load

FILE = Path(__file__).with_name("dead.yaml")
# Each mutant with the wrong reason for which a test can pass on it.
CASES = {
    "registers-only": "No device exists, so no pod is scheduled and every list of devices is empty.",
    "forget-registration-socket": "Claims are allocated, but the kubelet does not find the driver.",
    "refuses-everything": "Claims are allocated, and the driver refuses to prepare each of them.",
    "only-answers": "Pods run, but no container sees a device and nothing is written on the node.",
    "test-pods-never-start": "The driver is correct: claims are allocated and prepared, but no container starts.",
}
UNJUDGED = "unjudged"  # the correct driver is not judged either: its file does not declare a feature, or a gate is off
NO_ANSWER = "no answer"
_LET_OFF = {Verdict.PASS, Verdict.FLAKY, Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED}
_ERRORS = {Verdict.ERROR, Verdict.TIMEOUT}
_WITHOUT_ANSWER = {Verdict.BLOCKED, Verdict.EXCLUDED, None}


class MayPass(Strict):
    """Requirements that may pass on some of the mutants, and the reason."""

    mutants: tuple[str, ...]
    requirements: tuple[str, ...]
    reason: str


class Reasons(Strict):
    """The content of dead.yaml."""

    may_pass: tuple[MayPass, ...] = ()

    def by_key(self) -> dict[Key, str]:
        """Return the reason for each mutant and requirement."""
        return {
            (name, id_): each.reason for each in self.may_pass for name in each.mutants for id_ in each.requirements
        }


def read() -> Reasons:
    """Return the reasons in dead.yaml. UsageError if it is wrong."""
    return load(FILE, Reasons)


def plan(catalogue: Catalogue, mutants: Sequence[str] = (), words: str = "") -> dict[str, list[Entry]]:
    """Return the requirements about the driver for each mutant. Empty if other mutants are selected."""
    found = [
        entry
        for entry in catalogue.entries
        if entry.requirement.about is Subject.DRIVER and words.lower() in entry.requirement.id.lower()
    ]
    return {name: found for name in CASES if (not mutants or name in mutants) and found}


def answer_of(mutant: str, verdict: Verdict | None) -> str:
    """Return the result of a requirement with this verdict.

    On a wrong driver, an error is no answer: clean-up that broke could hide that the test passed. Where no test pod starts, an error is
    the right verdict.
    """
    is_driver = mutant in known.drivers()
    return NO_ANSWER if verdict in _WITHOUT_ANSWER or (is_driver and verdict in _ERRORS) else str(verdict)


def to_repeat(seen: Iterable[MutantResult], reasons: Mapping[Key, str]) -> list[str]:
    """Return the requirements to repeat with full patience: those without an answer, and those that should have passed."""
    return [each.requirement for each in seen if each.result == NO_ANSWER or _is_stale(each, reasons)]


def problems(wanted: Plan, seen: Mapping[Key, MutantResult], reasons: Mapping[Key, str]) -> list[str]:
    """Describe each requirement that passed without a reason, has a reason but did not pass, or has no answer."""
    nothing = {
        (name, entry.requirement.id): MutantResult(name, entry.requirement.id, NO_ANSWER, "not run yet")
        for name, entries in wanted.items()
        for entry in entries
    }
    return unexplained((seen.get(key, empty) for key, empty in nothing.items()), reasons)


def unexplained(seen: Iterable[MutantResult], reasons: Mapping[Key, str]) -> list[str]:
    """Describe each result that the reasons do not explain."""
    return [problem for each in seen if (problem := _problem(each, reasons))]


def mistakes(catalogue: Catalogue, reasons: Reasons) -> list[str]:
    """Describe what dead.yaml names and does not exist, or is not about the driver."""
    known = {entry.requirement.id for entries in plan(catalogue).values() for entry in entries}
    named = [id_ for each in reasons.may_pass for id_ in each.requirements]
    unknown = [f"{FILE.name}: no requirement about the driver is called {id_}" for id_ in named if id_ not in known]
    cases = [
        f"{FILE.name}: no case is called {name}"
        for each in reasons.may_pass
        for name in each.mutants
        if name not in CASES
    ]
    return [*unknown, *cases]


def _problem(each: MutantResult, reasons: Mapping[Key, str]) -> str:
    what = f"{each.requirement} on {each.mutant}"
    if each.result == NO_ANSWER:
        return f"no answer: {what}: {each.message}"
    if each.result in _LET_OFF and each.key not in reasons:
        return (
            f"{each.result} without a reason: {what}: mend its test, or say in {FILE.name} why; {each.message}".rstrip(
                "; "
            )
        )
    if _is_stale(each, reasons):
        return f"{each.result} instead of pass: {what}: remove it from {FILE.name}; {each.message}".rstrip("; ")
    return ""


def _is_stale(each: MutantResult, reasons: Mapping[Key, str]) -> bool:
    return each.key in reasons and each.result not in _LET_OFF
