"""Render docs/mutants.md: every mutant, what is wrong with it, and how each requirement that names it fails. Pure.

The page keeps its results: it is rendered from itself, so it can be checked without a cluster. Each result has the digest of the test
that was run; when the digest of the test changes, the result is stale and the page drops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ci.judge import page as judge_page
from ci.mutants import dead, dead_page, known
from ci.mutants.dead_page import DEAD, Cell
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, CONTROL, Key, MutantResult
from testbed.conformance.catalogue import Catalogue, Entry

NOT_YET = "not run yet"
REWRITTEN = "not run since the test was rewritten"
_LONGEST = 300
_HEAD = """# Mutants

A mutant is a driver or a cluster that is wrong in one known way. This page lists how each requirement that names a mutant fails on it: the
first words of the failure that a user would read. `python -m ci.mutants --write` generates the page from the suites and from the results
of `tox -e mutants`. The last column is the digest of the test that was run: a result is kept until the test or its manifests change.

To see a red test, copy `manifests/drivers/fake-gpu.yaml` to a file beside it, add `variables: {faults: [NAME]}` below its `builtInImage`
with the name of a driver from this page, and run `dra-testbed run --driver COPY -k REQUIREMENT --no-check`. Without `--no-check`, a
run may refuse a driver file whose probe shows nothing of what the mutant adds.

"""
_ROW = re.compile(r"\| (?P<requirement>[A-Z0-9]+-\d{3}) \| (?P<seen>.*) \| (?P<digest>[0-9a-f]*) \|")


def render(catalogue: Catalogue, seen: Mapping[Key, Cell]) -> str:
    """Return the page."""
    named = {name for entry in catalogue.entries for name in entry.requirement.mutants}
    parts = [_HEAD + _unproven(catalogue)]
    for title, names in (
        ("Drivers", known.drivers()),
        ("Clusters", known.clusters()),
        ("Features that are off", sorted(name for name in named if name.startswith(known.GATE_OFF))),
    ):
        parts += [f"## {title}\n\n"] if names else []
        parts += [_section(catalogue, name, seen) for name in sorted(names)]
    parts += [dead_page.section(catalogue, seen, dead.read()), judge_page.section(seen)]
    return "".join(parts).rstrip("\n") + "\n"


def parse(page: str) -> dict[Key, Cell]:
    """Return the results on a page, each with the digest of its test."""
    found: dict[Key, Cell] = {}
    mutant = ""
    for line in page.splitlines():
        mutant = line.removeprefix("### ").strip("`") if line.startswith("### ") else mutant
        row = _ROW.fullmatch(line)
        if row:
            found[mutant, row["requirement"]] = row["seen"], row["digest"]
    return {**found, **judge_page.parse(page)}


def caught(page: str) -> set[tuple[str, str, str]]:
    """Return the pairs of mutant and requirement that a page lists as caught, each with the digest of its test."""
    found = parse(page).items()
    return {(*key, by) for key, (text, by) in found if key[0] != DEAD and text.startswith(CAUGHT)}


def cells(results: Iterable[MutantResult]) -> dict[Key, Cell]:
    """Return the table cells of results."""
    return {each.key: (_cell(each), each.digest) for each in results if each.mutant != CONTROL}


def _cell(seen: MutantResult) -> str:
    text = re.sub(r"\s+", " ", seen.message).replace("|", "\\|")
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{seen.result}: {short}" if short else seen.result


def _section(catalogue: Catalogue, name: str, seen: Mapping[Key, Cell]) -> str:
    proven = [entry for entry in catalogue.entries if name in entry.requirement.mutants]
    rows = [_row(entry, seen.get((name, entry.requirement.id))) for entry in proven]
    table = "| requirement | what was seen | by |\n|---|---|---|\n" + "".join(rows) if rows else f"{_waiting(name)}\n"
    return f"### `{name}`\n\n{known.about(name)}\n\n{table}\n"


def _row(entry: Entry, cell: Cell | None) -> str:
    text, by = cell or (NOT_YET, "")
    is_fresh = not by or by == digest(entry)
    return f"| {entry.requirement.id} | {text if is_fresh else REWRITTEN} | {by if is_fresh else ''} |\n"


def _waiting(name: str) -> str:
    if name in dead.CASES:
        return "All requirements about the driver run on it, see [below](#drivers-that-do-nothing)."
    if name in known.OF_SHAPES:
        return "A driver file in manifests/drivers/mutants shows it, with other hardware."
    waits = "No pod shows it: it waits for tests of the wire tier."
    return waits if name in known.WAITING else "No requirement names it."


def _unproven(catalogue: Catalogue) -> str:
    every = [entry.requirement for entry in catalogue.entries]
    left = [f"* {each.id}: {each.unproven}\n" for each in every if each.unproven]
    listed = "".join(["Unproven:\n\n", *left, "\n"]) if left else ""
    return f"{len(every)} requirements, {len(left)} of them unproven.\n\n{listed}"
