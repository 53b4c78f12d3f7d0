"""The testbed of `driver init` is removed, also after a failure or Ctrl-C, unless the user named one that is up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import bringup
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig
from testbed.onboarding.discovery import initialize as module
from testbed.onboarding.discovery.initialize import InitRequest, initialize
from testbed.onboarding.discovery.questions import Questions
from testbed.onboarding.discovery.sources import INSTALLED
from testbed.progress import Progress


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Replace making and removing testbeds, and return the names of those that were removed."""
    monkeypatch.chdir(tmp_path)
    names: list[str] = []
    monkeypatch.setattr(bringup, "bring_up", lambda config, *_, **__: SimpleNamespace(name=config.name))
    monkeypatch.setattr(bringup, "attach", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(bringup, "tear_down", lambda name, _: names.append(name))
    return names


def run(**given: Any) -> None:
    initialize(InitRequest(INSTALLED, TestbedConfig(), **given), Questions(), Progress())


@pytest.mark.parametrize("failure", [TestbedError("the driver is not ready"), KeyboardInterrupt()])
def test_the_testbed_is_removed_after_a_failure(
    removed: list[str], failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(module._Initializer, "run", fail)
    with pytest.raises(type(failure)):
        run()
    assert len(removed) == 1
    with pytest.raises(type(failure)):
        run(testbed="mine")
    assert len(removed) == 1


@pytest.mark.usefixtures("removed")
def test_a_file_is_not_overwritten_without_force() -> None:
    Path("driver.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"driver\.yaml exists"):
        run()
    assert Path("driver.yaml").read_text() == "mine"
