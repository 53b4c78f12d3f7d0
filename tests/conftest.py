"""For all tests: those of our own code never see the user's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

try:
    import hypothesis
except ModuleNotFoundError:  # a mistyped path makes pytest look here for tests, also for who has come to run the suites
    pass
else:
    # How long an example takes says something about this machine, not about the code.
    hypothesis.settings.register_profile("busy", deadline=None)
    hypothesis.settings.register_profile("long", deadline=None, max_examples=100_000)  # `tox -e fuzz`
    hypothesis.settings.load_profile("busy")


@pytest.fixture(autouse=True)
def no_folder_of_the_user(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State goes into the test's own folder; only the tests against real clusters use the real one."""
    if "e2e" not in request.path.parts:
        monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state-of-the-test"))
