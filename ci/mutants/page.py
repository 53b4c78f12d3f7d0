"""docs/mutants.md: every mutant, what is wrong with it, and how each requirement that names it fails. Pure.

The page remembers what was seen: it is made again from itself, so that it can be checked without a cluster. With each result stands
which edition of the test saw it; of a test that was rewritten since, nothing has been seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ci.mutants import known
from ci.mutants.matrix import CAUGHT, CONTROL, Key, Seen, edition
from testbed.conformance.catalogue import Catalogue, Entry

Told = tuple[str, str]  # what was seen, by which edition of the test
NOT_YET = "not run yet"
REWRITTEN = "not run since the test was rewritten"
_LONGEST = 300
_HEAD = """# Mutants

Drivers and clusters that are wrong in one known way, and how the requirements that name them fail on each: the first words of the
failure that a user would read. Made by `python -m ci.mutants --write`, from the suites and from what `tox -e mutants` saw. In the last
column is the edition of the test that saw it.

To see a red test: copy `manifests/drivers/fake-gpu.yaml` beside itself, write `variables: {faults: [NAME]}` below its `builtInImage`
with the name of a driver below, and `dra-testbed run --driver COPY -k REQUIREMENT`.

"""
_ROW = re.compile(r"\| (?P<requirement>[A-Z0-9]+-\d{3}) \| (?P<seen>.*) \| (?P<edition>[0-9a-f]*) \|")


def render(catalogue: Catalogue, seen: Mapping[Key, Told]) -> str:
    """The page."""
    named = {name for entry in catalogue.entries for name in entry.requirement.mutants}
    parts = [_HEAD + _unproven(catalogue)]
    for title, names in (
        ("Drivers", known.drivers()),
        ("Clusters", known.clusters()),
        ("Features that are off", sorted(name for name in named if name.startswith(known.GATE_OFF))),
    ):
        parts += [f"## {title}\n\n"] if names else []
        parts += [_section(catalogue, name, seen) for name in sorted(names)]
    return "".join(parts).rstrip("\n") + "\n"


def remembered(page: str) -> dict[Key, Told]:
    """What a page says was seen, and by which edition of the test."""
    found: dict[Key, Told] = {}
    mutant = ""
    for line in page.splitlines():
        mutant = line.removeprefix("### ").strip("`") if line.startswith("### ") else mutant
        row = _ROW.fullmatch(line)
        if row:
            found[mutant, row["requirement"]] = row["seen"], row["edition"]
    return found


def caught(page: str) -> set[tuple[str, str, str]]:
    """The mutants and requirements of which a page says that they were seen to fail, and by which edition of the test."""
    return {(*key, by) for key, (text, by) in remembered(page).items() if text.startswith(CAUGHT)}


def told(results: Iterable[Seen]) -> dict[Key, Told]:
    """What was seen, in a cell."""
    return {each.key: (_cell(each), each.edition) for each in results if each.mutant != CONTROL}


def _cell(seen: Seen) -> str:
    text = re.sub(r"\s+", " ", seen.message).replace("|", "\\|")
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{seen.result}: {short}" if short else seen.result


def _section(catalogue: Catalogue, name: str, seen: Mapping[Key, Told]) -> str:
    proven = [entry for entry in catalogue.entries if name in entry.requirement.mutants]
    rows = [_row(entry, seen.get((name, entry.requirement.id))) for entry in proven]
    table = "| requirement | what was seen | by |\n|---|---|---|\n" + "".join(rows) if rows else f"{_waiting(name)}\n"
    return f"### `{name}`\n\n{known.about(name)}\n\n{table}\n"


def _row(entry: Entry, told_: Told | None) -> str:
    text, by = told_ or (NOT_YET, "")
    is_fresh = not by or by == edition(entry)
    return f"| {entry.requirement.id} | {text if is_fresh else REWRITTEN} | {by if is_fresh else ''} |\n"


def _waiting(name: str) -> str:
    shown = "No pod shows it: it waits for the tests that call a driver as the kubelet does."
    return shown if name in known.WAITING else "No requirement names it."


def _unproven(catalogue: Catalogue) -> str:
    every = [entry.requirement for entry in catalogue.entries]
    left = [f"* {each.id}: {each.unproven}\n" for each in every if each.unproven]
    told_ = "".join(["Unproven:\n\n", *left, "\n"]) if left else ""
    return f"{len(every)} requirements, {len(left)} of them unproven.\n\n{told_}"
