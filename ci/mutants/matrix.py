"""Which requirement has to fail on which mutant, and what was seen. Pure, but for the file that lets an interrupted run go on."""

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
# These leave nodes behind that need a while to become right again, so they come last.
_SLOW_TO_HEAL = ("never-give-back", "unprepare-fails")
Event = Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """What one requirement did on one mutant; on `control`, where nothing is wrong, `caught` means that it passed."""

    mutant: str
    requirement: str
    result: str
    message: str = ""
    seconds: float = 0
    digest: str = ""  # of the test

    @property
    def key(self) -> Key:
        """What it is about."""
        return self.mutant, self.requirement


def plan(catalogue: Catalogue, mutants: Sequence[str] = (), words: str = "") -> dict[str, list[Entry]]:
    """The requirements of each mutant that names it, and all of them where nothing is wrong. What needs a testbed of its own comes last."""
    entries = [entry for entry in catalogue.entries if words.lower() in entry.requirement.id.lower()]
    named = {name for entry in entries for name in entry.requirement.mutants}
    chosen = {name for name in named if not mutants or name in mutants}
    proven = chosen or named
    found = {name: [entry for entry in entries if name in entry.requirement.mutants] for name in chosen}
    if not mutants or CONTROL in mutants:
        found[CONTROL] = [entry for entry in entries if proven & set(entry.requirement.mutants)]
    return {name: found[name] for name in sorted(found, key=_rank)}


def without(wanted: Plan, known: Known) -> dict[str, list[Entry]]:
    """A plan less what is known of these tests."""
    left = {
        name: [entry for entry in entries if (name, entry.requirement.id, digest(entry)) not in known]
        for name, entries in wanted.items()
    }
    return {name: entries for name, entries in left.items() if entries}


def missing(wanted: Plan, known: Known) -> dict[str, list[Entry]]:
    """A plan less what is known to fail on mutants; only what is left has to pass where nothing is wrong."""
    left = without(wanted, known)
    ids = {entry.requirement.id for name, entries in left.items() if name != CONTROL for entry in entries}
    left[CONTROL] = [entry for entry in left.get(CONTROL, ()) if entry.requirement.id in ids]
    return {name: entries for name, entries in left.items() if entries}


def _rank(name: str) -> tuple[bool, bool, bool, str]:
    return name.startswith("gate-off:"), name == CONTROL, name in _SLOW_TO_HEAL, name


def results(mutant: str, log: Sequence[Event], digests: Mapping[str, str]) -> list[Seen]:
    """What the events of a run say of the requirements all of whose cases have ended; an interrupt may come before."""
    rows = [row for event in log if event["event"] == "selected" for row in event["requirements"] if row["tests"]]
    done = [event for event in log if event["event"] == "test-finished"]
    cases = {row["id"]: [event for event in done if event["id"] == row["id"]] for row in rows}
    whole = [row["id"] for row in rows if set(row["tests"]) <= {case["test"] for case in cases[row["id"]]}]
    left_out = [Seen(mutant, row["id"], UNCLEAR, row["reason"]) for row in rows if row.get("verdict")]
    seen = [*left_out, *(_seen(mutant, name, cases[name]) for name in whole)]
    return [replace(each, digest=digests[each.requirement]) for each in seen]


def _seen(mutant: str, requirement: str, cases: Sequence[Event]) -> Seen:
    seconds = round(sum(case["seconds"] for case in cases), 1)
    caught = [case for case in cases if _is_caught(case)]
    other = [case for case in cases if case["verdict"] != "pass" and not _is_caught(case)]
    if mutant == CONTROL:
        wrong = [*caught, *other]
        return Seen(mutant, requirement, SURVIVED if wrong else CAUGHT, _first_line(wrong), seconds)
    result = CAUGHT if caught else UNCLEAR if other else SURVIVED
    some = f"in {len(caught)} of {len(cases)} cases: " if 0 < len(caught) < len(cases) else ""
    return Seen(mutant, requirement, result, some + _first_line(caught or other), seconds)


def _is_caught(case: Event) -> bool:
    """It failed by what it saw. A requirement about the cluster cannot blame the driver, so its failure has another name."""
    return bool(case["verdict"] in ("fail", "error") and case.get("observed") and case["message"].strip())


def _first_line(cases: Sequence[Event]) -> str:
    """What was expected, why it was not so, and what was seen; of a plain comparison, the line that makes it."""
    said = [line.strip() for case in cases[:1] for line in case["message"].splitlines() if line.strip()]
    wanted = ("test:",) if said and said[0].startswith("assert ") else ("likely cause:", "last seen:")
    return "; ".join([*said[:1], *(line for line in said[1:] if line.startswith(wanted))])


class State:
    """The results so far, a line each, written as they are known."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[Key, Seen]:
        """By mutant and requirement; what was seen last counts."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [Seen(**json.loads(line)) for line in lines]
        return {each.key: each for each in found}

    def add(self, seen: Iterable[Seen]) -> None:
        """Remember them."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.writelines(json.dumps(asdict(each)) + "\n" for each in seen)
