"""docs/mutants.md: every mutant, what is wrong with it, and how each requirement that names it fails. Pure.

The page keeps its results: it is rendered from itself, so it can be checked without a cluster. Each result has the digest of the test
that was run; when the digest of the test changes, the result is stale and the page drops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ci.mutants import known
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, CONTROL, Key, Seen
from testbed.conformance.catalogue import Catalogue, Entry

Told = tuple[str, str]  # what was seen, and the digest of the test
NOT_YET = "not run yet"
REWRITTEN = "not run since the test was rewritten"
_LONGEST = 300
_HEAD = """# Mutants

Drivers and clusters that are wrong in one known way, and how the requirements that name them fail on each: the first words of the
failure that a user would read. Made by `python -m ci.mutants --write`, from the suites and from what `tox -e mutants` saw. The last column
is the digest of the test that was run: a result is kept until the test or its manifests change.

To see a red test: copy `manifests/drivers/fake-gpu.yaml` beside itself, write `variables: {faults: [NAME]}` below its `builtInImage`
with the name of a driver below, and `dra-testbed run --driver COPY -k REQUIREMENT`.

"""
_ROW = re.compile(r"\| (?P<requirement>[A-Z0-9]+-\d{3}) \| (?P<seen>.*) \| (?P<digest>[0-9a-f]*) \|")


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
    """Return the results on a page, each with the digest of its test."""
    found: dict[Key, Told] = {}
    mutant = ""
    for line in page.splitlines():
        mutant = line.removeprefix("### ").strip("`") if line.startswith("### ") else mutant
        row = _ROW.fullmatch(line)
        if row:
            found[mutant, row["requirement"]] = row["seen"], row["digest"]
    return found


def caught(page: str) -> set[tuple[str, str, str]]:
    """Return the pairs of mutant and requirement that a page lists as caught, each with the digest of its test."""
    return {(*key, by) for key, (text, by) in remembered(page).items() if text.startswith(CAUGHT)}


def told(results: Iterable[Seen]) -> dict[Key, Told]:
    """What was seen, in a cell."""
    return {each.key: (_cell(each), each.digest) for each in results if each.mutant != CONTROL}


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
    is_fresh = not by or by == digest(entry)
    return f"| {entry.requirement.id} | {text if is_fresh else REWRITTEN} | {by if is_fresh else ''} |\n"


def _waiting(name: str) -> str:
    shown = "No pod shows it: it waits for the tests that call a driver as the kubelet does."
    return shown if name in known.WAITING else "No requirement names it."


def _unproven(catalogue: Catalogue) -> str:
    every = [entry.requirement for entry in catalogue.entries]
    left = [f"* {each.id}: {each.unproven}\n" for each in every if each.unproven]
    told_ = "".join(["Unproven:\n\n", *left, "\n"]) if left else ""
    return f"{len(every)} requirements, {len(left)} of them unproven.\n\n{told_}"
