"""At the start of a run a wrong probe is refused; what the driver does wrong is a note, and left to the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed import bringup
from testbed.conformance.context import RunContext
from testbed.conformance.selection import Facts
from testbed.errors import UsageError
from testbed.models.report import Environment
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import RunRequest
from testbed.plugin import first_devices
from testbed.waiting import set_patience
from tests.fakes import cluster


@pytest.fixture(autouse=True)
def _impatient() -> Any:
    set_patience(0.01)
    yield
    set_patience(1.0)


def _check(monkeypatch: pytest.MonkeyPatch, fault: str = "", file: Path | None = None, **request: Any) -> list[str]:
    made = cluster.make(fault)
    monkeypatch.setattr(bringup, "attach", lambda _name: made)
    environment = Environment(
        testbed="fake", provider="local", kubernetes="v1.37.0", nodes=2, runtime="", feature_gates={}
    )
    path = file or cluster.driver_path()
    asked = RunRequest(testbed="fake", report=Path("out"), **request)
    return first_devices.check(RunContext(asked, path, environment, Facts("v1.37.0", 2, 8), session="s"))


def _wrong(folder: Path, old: str, new: str) -> Path:
    data = cluster.driver_path().parents[1]
    text = cluster.driver_path().read_text().replace("../", f"{data}/")
    path = folder / "driver.yaml"
    path.write_text(text.replace("[fake-nic.yaml]", f"[{data}/drivers/fake-nic.yaml]").replace(old, new))
    return path


def test_a_wrong_probe_is_refused_with_its_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = _wrong(tmp_path, "^GPU_DEVICE_", "^GPU_DEVICES_")
    with pytest.raises(UsageError, match=r"driver\.yaml:\d+: spec\.probe\.env: a device of class"):
        _check(monkeypatch, file=path)


def test_a_driver_that_adds_nothing_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = _check(monkeypatch, "no-env")
    assert any(each.startswith("CLAIM-001: a device of class") for each in notes)


@pytest.mark.parametrize("request_", [{"check": False}, {"tiers": (Tier.STATIC, Tier.WIRE)}])
def test_nothing_is_tried_if_no_test_uses_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request_: dict[str, Any]
) -> None:
    path = _wrong(tmp_path, "^GPU_DEVICE_", "^GPU_DEVICES_")
    assert _check(monkeypatch, file=path, **request_) == []


def test_an_api_server_that_goes_away_is_left_to_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = _check(monkeypatch, "api-goes-away")
    assert "no first device was tried" in note
