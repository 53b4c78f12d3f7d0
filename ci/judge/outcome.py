"""The outcome of a pair: the verdicts of its report, compared with those that are allowed. Pure. For `running` and `page`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci.judge.pairs import Pair

RIGHT, WRONG, UNCLEAR = "right", "wrong", "unclear"
NONE = "no verdict"
Verdicts = Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """How the judge did under a fault: `right`, `wrong`, or `unclear` if the fault had no effect or there is no report."""

    pair: str
    result: str
    seen: str = ""
    seconds: float = 0
    digest: str = ""


def verdicts(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the verdict of each requirement that a report has."""
    return {each["id"]: each.get("verdict") or NONE for each in report.get("requirements", ())}


def compare(pair: Pair, seen: Verdicts, *, happened: bool, seconds: float = 0) -> Outcome:
    """Return the outcome of a run. A verdict that is not allowed is wrong, even if the fault had no effect."""
    found = {name: seen.get(name, NONE) for name in sorted(pair.expected)}
    wrong = [name for name, verdict in found.items() if verdict not in pair.expected[name]]
    result = WRONG if wrong else RIGHT if happened else UNCLEAR
    shown = ", ".join(
        f"{name} {verdict}" + (" (not allowed)" if name in wrong else "") for name, verdict in found.items()
    )
    return Outcome(pair.name, result, shown if happened else f"the fault had no effect; {shown}", seconds, pair.digest)
