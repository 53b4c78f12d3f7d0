"""Checks the IDs of spec.known in a driver file against the catalogue, before anything slow begins. Used by `execution` and `dry_run`."""

from __future__ import annotations

from pathlib import Path

from testbed import folders
from testbed.conformance import catalogue
from testbed.errors import did_you_mean
from testbed.models import document
from testbed.models.document import Problem, format_location
from testbed.models.driver_file import load_driver_file
from testbed.models.strict import file_error


def check_known_ids(driver_file: Path) -> None:
    """Raise UsageError if the driver file lists a known failure of a requirement that does not exist."""
    known = load_driver_file(driver_file).known
    every = {entry.requirement.id for entry in catalogue.read([folders.data("suites")]).every} if known else set()
    wrong = {number: each.id for number, each in enumerate(known) if each.id not in every}
    if not wrong:
        return
    source = document.read(driver_file)
    places = {("spec", "known", number, "id"): name for number, name in wrong.items()}
    raise file_error(
        driver_file,
        [Problem(source.line(place), format_location(place), _explain(name, every)) for place, name in places.items()],
    )


def _explain(name: str, every: set[str]) -> str:
    hint = did_you_mean(name, every) or "`dra-testbed list` shows all"
    return f"is {name!r}, but there is no such requirement; {hint}"
