"""The known failures of a driver file."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from testbed.errors import UsageError
from tests.models.driver.files import FULL, load


def test_known_failures_are_read(folder: Path) -> None:
    known = "  known:\n  - {id: PREP-004, reason: pool is ignored, link: 'https://a.example/12', until: 2027-03-01}\n"
    (found,) = load(folder, FULL + known).known
    assert (found.id, found.reason, found.link, found.until) == (
        "PREP-004",
        "pool is ignored",
        "https://a.example/12",
        date(2027, 3, 1),
    )


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("{id: prep, reason: a}", "spec.known[0].id: is 'prep', but must match the pattern"),
        ("{id: PREP-004}", "spec.known[0].reason: is missing"),
        ("{id: PREP-004, reason: a, until: soon}", "spec.known[0].until: is 'soon'"),
        ("{id: PREP-004, reason: a}, {id: PREP-004, reason: b}", "spec: lists PREP-004 more than once in known"),
    ],
)
def test_a_wrong_known_failure_is_refused(folder: Path, entries: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, FULL + f"  known: [{entries}]\n")
