"""Plan which requirement must fail on which mutant, and read the results. Pure, except for the file of an interrupted run's results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ci.mutants.digest import digest
from testbed.conformance.catalogue import Catalogue, Entry

Key = tuple[str, str]  # a mutant and the id of a requirement
Plan = Mapping[str, Sequence[Entry]]
Known = AbstractSet[tuple[str, str, str]]  # a mutant, a requirement, and the digest of its test
CONTROL = "control"
CAUGHT, SURVIVED, UNCLEAR = "caught", "survived", "unclear"
# Nodes recover slowly from these, so they come last.
_SLOW_TO_RECOVER = ("never-give-back", "unprepare-fails")
Event = Mapping[str, Any]


@dataclass(frozen=True)
class MutantResult:
    """The result of one requirement on one mutant. `control` is the correct testbed, where `caught` means that the requirement passed."""

    mutant: str
    requirement: str
    result: str
    message: str = ""
    seconds: float = 0
    digest: str = ""  # of the test

    @property
    def key(self) -> Key:
        """Return the mutant and the requirement."""
        return self.mutant, self.requirement


def plan(catalogue: Catalogue, mutants: Sequence[str] = (), words: str = "") -> dict[str, list[Entry]]:
    """Return the requirements to run on each mutant, and all of them on `control`. Mutants that need their own testbed come last."""
    entries = [entry for entry in catalogue.entries if words.lower() in entry.requirement.id.lower()]
    named = {name for entry in entries for name in entry.requirement.mutants}
    chosen = {name for name in named if not mutants or name in mutants}
    proven = chosen or named
    found = {name: [entry for entry in entries if name in entry.requirement.mutants] for name in chosen}
    if not mutants or CONTROL in mutants:
        found[CONTROL] = [entry for entry in entries if proven & set(entry.requirement.mutants)]
    return {name: found[name] for name in sorted(found, key=_rank)}


def without(wanted: Plan, known: Known) -> dict[str, list[Entry]]:
    """Return the plan without the pairs whose result is known for the current test."""
    left = {
        name: [entry for entry in entries if (name, entry.requirement.id, digest(entry)) not in known]
        for name, entries in wanted.items()
    }
    return {name: entries for name, entries in left.items() if entries}


def missing(wanted: Plan, known: Known) -> dict[str, list[Entry]]:
    """Return the plan without the known pairs, and without requirements that then run on `control` only."""
    left = without(wanted, known)
    ids = {entry.requirement.id for name, entries in left.items() if name != CONTROL for entry in entries}
    left[CONTROL] = [entry for entry in left.get(CONTROL, ()) if entry.requirement.id in ids]
    return {name: entries for name, entries in left.items() if entries}


def _rank(name: str) -> tuple[bool, bool, bool, str]:
    return name.startswith("gate-off:"), name == CONTROL, name in _SLOW_TO_RECOVER, name


def results(mutant: str, log: Sequence[Event], digests: Mapping[str, str]) -> list[MutantResult]:
    """Return the results of the requirements whose cases have all ended; an interrupted run has others, too."""
    rows = [row for event in log if event["event"] == "selected" for row in event["requirements"] if row["tests"]]
    done = [event for event in log if event["event"] == "test-finished"]
    cases = {row["id"]: [event for event in done if event["id"] == row["id"]] for row in rows}
    complete = [row["id"] for row in rows if set(row["tests"]) <= {case["test"] for case in cases[row["id"]]}]
    not_judged = [MutantResult(mutant, row["id"], UNCLEAR, row["reason"]) for row in rows if row.get("verdict")]
    found = [*not_judged, *(_result(mutant, name, cases[name]) for name in complete)]
    return [replace(each, digest=digests[each.requirement]) for each in found]


def _result(mutant: str, requirement: str, cases: Sequence[Event]) -> MutantResult:
    seconds = round(sum(case["seconds"] for case in cases), 1)
    caught = [case for case in cases if _is_caught(case)]
    other = [case for case in cases if case["verdict"] != "pass" and not _is_caught(case)]
    if mutant == CONTROL:
        wrong = [*caught, *other]
        return MutantResult(mutant, requirement, SURVIVED if wrong else CAUGHT, _first_line(wrong), seconds)
    result = CAUGHT if caught else UNCLEAR if other else SURVIVED
    some = f"in {len(caught)} of {len(cases)} cases: " if 0 < len(caught) < len(cases) else ""
    return MutantResult(mutant, requirement, result, some + _first_line(caught or other), seconds)


def _is_caught(case: Event) -> bool:
    """Return True if a case failed by an observation."""
    return bool(case["verdict"] in ("fail", "error") and case.get("observed") and case["message"].strip())


def _first_line(cases: Sequence[Event]) -> str:
    """Return what was expected, the likely cause and the last observation; of a plain assert, the assert."""
    lines = [line.strip() for case in cases[:1] for line in case["message"].splitlines() if line.strip()]
    wanted = ("test:",) if lines and lines[0].startswith("assert ") else ("likely cause:", "last seen:")
    return "; ".join([*lines[:1], *(line for line in lines[1:] if line.startswith(wanted))])


class State:
    """The file of the results so far, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[Key, MutantResult]:
        """Return the last result of each mutant and requirement."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [MutantResult(**json.loads(line)) for line in lines]
        return {each.key: each for each in found}

    def add(self, results: Iterable[MutantResult]) -> None:
        """Append results."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.writelines(json.dumps(asdict(each)) + "\n" for each in results)

    def discard(self, plan: Mapping[str, Iterable[Entry]]) -> None:
        """Remove the results of a plan, so that it runs again. All other results stay."""
        kept = [each for each in self.read().values() if each.requirement not in _ids(plan.get(each.mutant, ()))]
        if self.path.exists():
            self.path.unlink()
            self.add(kept)


def _ids(entries: Iterable[Entry]) -> set[str]:
    return {each.requirement.id for each in entries}
