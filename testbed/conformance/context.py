"""What the controller decided about a run. The plugin ships it to xdist's workers as JSON; they decide nothing themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from testbed.conformance.selection import Facts
from testbed.models.report import Environment
from testbed.models.run_request import RunRequest


@dataclass(frozen=True)
class RunContext:
    """The request, and what was found on the testbed. No other run has the same `session`.

    `images` are the images of each driver's pods with their IDs, by the name of the driver.
    """

    request: RunRequest
    driver_file: Path
    environment: Environment
    facts: Facts
    session: str
    images: dict[str, dict[str, str]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the context as text."""
        return _AS_JSON.dump_json(self, by_alias=True).decode()

    @classmethod
    def from_json(cls, text: str) -> RunContext:
        """Return the context that `to_json` wrote."""
        return _AS_JSON.validate_json(text)


_AS_JSON = TypeAdapter(RunContext)
