"""What the controller decided once about a run. It travels as JSON to pytest's workers, which decide nothing themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from testbed.conformance.profiles import FULL
from testbed.conformance.selection import Facts


@dataclass(frozen=True)
class RunContext:
    """Where and how this run judges."""

    testbed: str
    driver_file: Path
    report: Path
    facts: Facts
    provider: str
    runtime: str
    tiers: frozenset[str] = frozenset()
    profile: str = FULL
    patience: float = 1.0
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    run: str = ""  # a word that no other run has

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self), default=_plain)

    @classmethod
    def from_json(cls, text: str) -> RunContext:
        """Back from text."""
        content = json.loads(text)
        facts: dict[str, Any] = {
            name: frozenset(each) if isinstance(each, list) else each for name, each in content["facts"].items()
        }
        return cls(
            **{
                **content,
                "driver_file": Path(content["driver_file"]),
                "report": Path(content["report"]),
                "tiers": frozenset(content["tiers"]),
                "facts": Facts(**facts),
            }
        )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else sorted(value)  # type: ignore[call-overload]  # frozensets of words
