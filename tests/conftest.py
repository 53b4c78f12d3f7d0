"""Fixtures for all tests: unit tests never use the user's state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

try:
    import hypothesis
except (
    ModuleNotFoundError
):  # users who run the suites may not have hypothesis, and a mistyped path makes pytest import this file
    pass
else:
    # No deadline, because the duration of an example depends on the load of the machine.
    hypothesis.settings.register_profile("busy", deadline=None)
    hypothesis.settings.register_profile("long", deadline=None, max_examples=100_000)  # `tox -e fuzz`
    hypothesis.settings.load_profile("busy")


@pytest.fixture(autouse=True)
def separate_state_folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the state folder to a temporary one, except in the tests against real clusters."""
    if "e2e" not in request.path.parts:
        monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state-of-the-test"))
