"""The part of docs/mutants.md about drivers that do nothing: one row for each requirement, with its result on each mutant. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ci.mutants import dead
from ci.mutants.dead import CASES, MayPass, Reasons
from ci.mutants.digest import digest
from ci.mutants.matrix import Key, MutantResult
from testbed.conformance.catalogue import Catalogue, Entry

Cell = tuple[str, str]  # the results, and the digest of the test
DEAD = "dead"
_NOT_YET = "not run yet"
_HEAD = """## Drivers that do nothing

A test can pass for the wrong reason: "sees no device" and "stays pending" also hold where nothing works. So all requirements about the
driver run on drivers that do nothing, and on a cluster in which no test pod starts:

"""
_LISTED = "A requirement that passes there is listed in `ci/mutants/dead.yaml`, with the reason:\n\n"
_TABLE = f"""### `{DEAD}`

What `tox -e mutants -- --dead` saw. `{dead.UNJUDGED}`: the correct driver is not judged either, because a feature is off.

| requirement | results | by |
|---|---|---|
"""


def section(catalogue: Catalogue, seen: Mapping[Key, Cell], reasons: Reasons) -> str:
    """Return the section."""
    cases = [f"* `{name}`: {why}\n" for name, why in CASES.items()]
    listed = [_may_pass(each) for each in reasons.may_pass]
    entries = next(iter(dead.plan(catalogue).values()), [])
    rows = [_row(entry, seen.get((DEAD, entry.requirement.id))) for entry in entries]
    return "".join([_HEAD, *cases, "\n", _LISTED, *listed, "\n", _TABLE, *rows, "\n"])


def cells(before: Mapping[Key, Cell], results: Iterable[MutantResult]) -> dict[Key, Cell]:
    """Return the cells of the page with these results. Earlier results stay as long as their test has not changed."""
    found: dict[Key, Cell] = {}
    for each in results:
        key = DEAD, each.requirement
        text, by = found.get(key) or before.get(key) or ("", "")
        known = _parsed(text) if by == each.digest else {}
        found[key] = _text({**known, each.mutant: each.result}), each.digest
    return found


def results(catalogue: Catalogue, seen: Mapping[Key, Cell]) -> dict[Key, MutantResult]:
    """Return the results on the page whose test has not changed since."""
    digests = {entry.requirement.id: digest(entry) for entry in catalogue.entries}
    found = [
        MutantResult(name, requirement, result, digest=by)
        for (mutant, requirement), (text, by) in seen.items()
        if mutant == DEAD and by and by == digests.get(requirement)
        for name, result in _parsed(text).items()
    ]
    return {each.key: each for each in found}


def _row(entry: Entry, cell: Cell | None) -> str:
    text, by = cell or ("", "")
    is_fresh = by == digest(entry)
    return f"| {entry.requirement.id} | {text if is_fresh else _NOT_YET} | {by if is_fresh else ''} |\n"


def _may_pass(each: MayPass) -> str:
    on = "all" if set(each.mutants) == CASES.keys() else ", ".join(f"`{name}`" for name in each.mutants)
    return f"* {', '.join(each.requirements)} (on {on}): {each.reason}\n"


def _text(by_case: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {by_case[name]}" for name in CASES if name in by_case)


def _parsed(text: str) -> dict[str, str]:
    found = (each.partition(": ") for each in text.split(", "))
    return {name: result for name, _, result in found if name in CASES and result}
