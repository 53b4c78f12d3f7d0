"""What others ask of DRA, which of our requirements ask the same, and what none asks yet, with the reason. For `__main__`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import Field

from testbed.conformance.catalogue import Catalogue, Entry
from testbed.errors import UsageError
from testbed.models.strict import Strict

FILE = "upstream.yaml"  # beside the suites
_HEAD = """# What others ask, and what covers it

Kubernetes tests itself: end to end (L, P, S, AA, PL, PD, CG, CC, T, DS, M, H, E, A, R, B, U, WL, AL) and on one node (N).
G is what these tests leave open, # a bug that reached releases, W a check on the wire. All are named in `suites/upstream.yaml`, in our
words; a requirement says with `covers` what it asks as well, and may ask more. Made by `python -m testbed.reporting --write`.

"""


class Asked(Strict):
    """One thing that others ask. `why` is a word for the reason that nothing covers it."""

    title: str = Field(min_length=1)
    why: str = ""


class Wanted(Strict):
    """One thing that our own catalogue names, for one of its suites, and that no requirement asks. `why` is a word for the reason."""

    suite: str = Field(pattern="^[A-Z]+$")
    title: str = Field(min_length=1)
    why: str


class Upstream(Strict):
    """The file."""

    reasons: dict[str, str]
    ids: dict[str, Asked]
    catalogue: list[Wanted] = Field(default=[])


def read(path: Path) -> Upstream:
    """What others ask, as the file says."""
    return Upstream.model_validate(yaml.safe_load(path.read_text()))


def problems(upstream: Upstream, catalogue: Catalogue) -> list[str]:
    """Where the file and the suites contradict each other."""
    return sorted(_problems(upstream, _covering(catalogue)))


def page(upstream: Upstream, catalogue: Catalogue) -> str:
    """The page, for people."""
    wrong = problems(upstream, catalogue)
    if wrong:
        raise UsageError("the suites and what they cover do not agree:\n" + "\n".join(f"    {each}" for each in wrong))
    covering = _covering(catalogue)
    tested = [each for each in upstream.ids if any(entry.function for entry in covering.get(each, ()))]
    planned = [each for each in upstream.ids if each in covering and each not in tested]
    count = f"Of {len(upstream.ids)} things, {len(tested)} are covered, {len(planned)} are covered by what has no test yet.\n"
    return _HEAD + count + _covered(upstream, covering) + _uncovered(upstream) + _wanted(upstream)


def _covered(upstream: Upstream, covering: dict[str, list[Entry]]) -> str:
    rows = [
        f"| {each} | {asked.title} | {', '.join(map(_shown, covering[each]))} |\n"
        for each, asked in upstream.ids.items()
        if each in covering
    ]
    return "\n## Covered\n\n| id | what is asked | by |\n|---|---|---|\n" + "".join(rows)


def _uncovered(upstream: Upstream) -> str:
    rows = [
        f"| {each} | {asked.title} | {upstream.reasons[asked.why]} |\n"
        for each, asked in upstream.ids.items()
        if asked.why
    ]
    return "\n## Not covered yet\n\n| id | what is asked | why |\n|---|---|---|\n" + "".join(rows)


def _wanted(upstream: Upstream) -> str:
    head = "\n## Wanted by ourselves, and not required\n\nWhat our catalogue names beside these ids, by suite.\n\n"
    rows = [f"| {each.suite} | {each.title} | {upstream.reasons[each.why]} |\n" for each in upstream.catalogue]
    return head + "| suite | what is wanted | why not |\n|---|---|---|\n" + "".join(rows) if rows else ""


def _shown(entry: Entry) -> str:
    return entry.requirement.id if entry.function else f"{entry.requirement.id} (no test yet)"


def _covering(catalogue: Catalogue) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in catalogue.every:
        for each in entry.requirement.covers:
            found.setdefault(each, []).append(entry)
    return found


def _problems(upstream: Upstream, covering: dict[str, list[Entry]]) -> Iterator[str]:
    for each, entries in covering.items():
        if each not in upstream.ids:
            yield f"{entries[0].requirement.id} covers {each}, which {FILE} does not know"
    for each, asked in upstream.ids.items():
        if asked.why and asked.why not in upstream.reasons:
            yield f"{each} has the reason {asked.why}, which {FILE} does not know"
        if each in covering and asked.why:
            yield f"{each} is covered by {covering[each][0].requirement.id}: take its `why` out of {FILE}"
        if each not in covering and not asked.why:
            yield f"{each} is covered by nothing, and has no `why` in {FILE}"
    for wanted in upstream.catalogue:
        if wanted.why not in upstream.reasons:
            yield f"{wanted.suite}, {wanted.title}: has the reason {wanted.why}, which {FILE} does not know"
    given = {asked.why for asked in upstream.ids.values()} | {wanted.why for wanted in upstream.catalogue}
    for reason in upstream.reasons.keys() - given:
        yield f"nothing has the reason {reason}"
