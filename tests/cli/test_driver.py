"""driver check, driver show: exit codes and what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed import bringup
from testbed.cli.main import run
from testbed.drivers.name_checks import WrongName, WrongNames
from testbed.waiting import set_patience
from tests.fakes import cluster


@pytest.fixture(autouse=True)
def _up(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(bringup, "attach", lambda _name: cluster.make())
    yield
    set_patience(1.0)


def _wrong_probe(folder: Path) -> Path:
    text = cluster.driver_path().read_text().replace("GPU_DEVICE_", "GPU_DEVICES_")
    path = folder / "driver.yaml"
    data = Path(cluster.driver_path()).parents[1]
    path.write_text(text.replace("../", f"{data}/").replace("[fake-nic.yaml]", f"[{data}/drivers/fake-nic.yaml]"))
    return path


def test_a_file_that_matches_the_driver_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["driver", "check", "fake-gpu", "--testbed", "fake"]) == 0
    assert "fake-gpu.yaml matches the driver" in capsys.readouterr().out


def test_a_probe_that_shows_nothing_is_a_mistake_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _wrong_probe(tmp_path)
    assert run(["driver", "check", str(path), "--testbed", "fake"]) == 2
    printed = capsys.readouterr().out
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "env:" in text)
    assert f"{path}:{line}: spec.probe.env: a device of class" in printed
    assert "the claim adds environment variable GPU_DEVICE_GPU_UUID" in printed


def test_findings_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["driver", "check", str(_wrong_probe(tmp_path)), "--testbed", "fake", "-o", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [each["key"] for each in found if each["blame"] == "file"] == ["spec.probe.env"]


@pytest.mark.parametrize(("fault", "code"), [("no-env", 1), ("image-missing", 3)])
def test_a_wrong_driver_or_cluster_is_not_a_mistake_of_the_file(
    monkeypatch: pytest.MonkeyPatch, fault: str, code: int
) -> None:
    monkeypatch.setattr(bringup, "attach", lambda _name: cluster.make(fault))
    assert run(["driver", "check", "fake-gpu", "--testbed", "fake", "--patience", "0.1"]) == code


def test_wrong_names_that_are_found_during_the_installation_have_lines_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise WrongNames("no", [WrongName("spec.devices.classes[0]", "the cluster has no DeviceClass x")])

    monkeypatch.setattr(bringup, "bring_up", refuse)
    path = _wrong_probe(tmp_path)
    assert run(["driver", "check", str(path)]) == 2
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "classes:" in text)
    assert f"{path}:{line}: spec.devices.classes[0]: the cluster has no DeviceClass x" in capsys.readouterr().out


def test_offline_needs_no_testbed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["driver", "check", "fake-gpu", "--offline"]) == 0
    assert "fake-gpu.yaml is valid" in capsys.readouterr().out


def test_what_would_be_judged_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["driver", "show", "fake-nic"]) == 0
    printed = capsys.readouterr().out
    assert "about the driver: MUST" in printed
    assert (
        "not MUST 1: the driver file does not declare invalid-configuration (spec.configuration.invalid)\n    CONFIG-020"
        in printed
    )
