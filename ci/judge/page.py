"""The section of docs/mutants.md about the mutants of the judge. Pure. Like the rest of the page, it is rendered from its own results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ci.judge.outcome import Outcome
from ci.judge.pairs import JUDGED_RIGHT, NEVER_FAIL, NEVER_PASS, PAIRS, Pair

Key = tuple[str, str]  # JUDGE and the name of a pair, as the rest of the page has a mutant and a requirement
Cell = tuple[str, str]  # what was seen, and the digest of the pair
JUDGE = "judge"
TITLE = "## Mutants of the judge"
NOT_YET = "not run yet"
_HEAD = f"""{TITLE}

Here the surroundings of the driver fail while a test runs. A requirement about the driver must not fail a correct driver then, and must not
pass a wrong one. `tox -e mutants -- --judge` runs the pairs, on one testbed that is made again when a fault broke it. The last column is
the digest of the pair: a result is kept until the pair changes.

| pair | fault | driver | allowed verdicts, and why | what was seen | by |
|---|---|---|---|---|---|
"""
_ROW = re.compile(r"\| `(?P<name>[a-z0-9-]+)` \|.*\| (?P<seen>[^|]*) \| (?P<digest>[0-9a-f]*) \|")
_WORDS = {JUDGED_RIGHT: "passes", NEVER_FAIL: "does not fail", NEVER_PASS: "does not pass"}


def section(seen: Mapping[Key, Cell], pairs: Iterable[Pair] = PAIRS) -> str:
    """Return the section, with the results whose pairs have not changed since."""
    return _HEAD + "".join(_row(pair, seen.get((JUDGE, pair.name), ("", ""))) for pair in pairs)


def parse(page: str) -> dict[Key, Cell]:
    """Return the results in the section of a page."""
    rows = filter(None, map(_ROW.fullmatch, page.partition(TITLE)[2].splitlines()))
    return {(JUDGE, row["name"]): (row["seen"], row["digest"]) for row in rows}


def cells(outcomes: Iterable[Outcome]) -> dict[Key, Cell]:
    """Return the table cells of outcomes."""
    return {(JUDGE, each.pair): (f"{each.result}: {each.seen}".replace("|", "/"), each.digest) for each in outcomes}


def _row(pair: Pair, cell: Cell) -> str:
    text, by = cell if cell[1] == pair.digest else (NOT_YET, "")
    fault = f"{pair.fault}, {pair.when}" if pair.when else str(pair.fault)
    driver = f"`{pair.driver}`" if pair.driver else "correct"
    return f"| `{pair.name}` | {fault} | {driver} | {_allowed(pair)}. {pair.why} | {text} | {by} |\n"


def _allowed(pair: Pair) -> str:
    return ", ".join(f"{name} {_WORDS[verdicts]}" for name, verdicts in sorted(pair.expected.items()))
