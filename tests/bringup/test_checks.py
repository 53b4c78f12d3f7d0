"""Wrong configurations are refused before anything is created."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.bringup import bring_up
from testbed.cli.main import run
from testbed.errors import TestbedError, UsageError
from testbed.models.config import effective
from testbed.progress import Silent
from testbed.providers.local import host


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty state folder."""
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "state"


def testbeds_in(state: Path) -> list[str]:
    """Return the testbeds in the state folder."""
    return [path.name for path in state.iterdir() if not path.name.startswith(".")]


def test_without_root_the_error_names_sudo_and_nothing_is_created(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unprivileged = dataclasses.replace(host.detect(), root=False)
    monkeypatch.setattr(host, "detect", lambda: unprivileged)

    with pytest.raises(TestbedError, match="sudo"):
        bring_up(effective(None, {"driver": "none"}), Silent())

    assert testbeds_in(state) == []


def test_an_unknown_gate_is_refused_with_suggestions(state: Path) -> None:
    with pytest.raises(UsageError, match="DRAConsumableCapacity"):
        bring_up(effective(None, {"feature_gates": {"DRAConsumableCapacty": True}}), Silent())

    assert testbeds_in(state) == []


def test_a_version_without_a_lock_file_is_refused_with_the_known_versions(state: Path) -> None:
    with pytest.raises(UsageError, match=r"1\.37"):
        bring_up(effective(None, {"kubernetes": "1.20"}), Silent())

    assert testbeds_in(state) == []


def test_an_unknown_provider_is_refused(state: Path) -> None:
    with pytest.raises(UsageError, match="local"):
        bring_up(dataclasses.replace(effective(None, {}), provider="cloud"), Silent())

    assert testbeds_in(state) == []


@pytest.mark.parametrize(("nodes", "enough"), [(1, True), (2, False), (4, False)])
def test_more_nodes_need_more_disk_space(
    nodes: int, enough: bool, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unprivileged = dataclasses.replace(host.detect(), root=False)  # so that `up` stops here at the latest
    monkeypatch.setattr(host, "detect", lambda: unprivileged)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=310 << 20))

    with pytest.raises(TestbedError) as refused:
        bring_up(effective(None, {"driver": "none", "nodes": nodes}), Silent())

    needed = f"disk full: 310 MiB free at {state}, this testbed needs {100 + 150 * nodes}"
    assert (needed in str(refused.value)) is not enough


HARDWARE = """
apiVersion: dra-testbed/v1alpha1
kind: Hardware
metadata: {name: mine}
spec: {devices: [{kind: gpu, count: -4, atributes: {a: b}, capacity: {memory: 80Gigs}}]}
"""


@pytest.mark.parametrize("words", [["up"], ["up", "--plan"], ["run"], ["run", "--plan"]])
def test_a_wrong_hardware_file_is_refused_with_all_mistakes(
    words: list[str],
    state: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unprivileged = dataclasses.replace(host.detect(), root=False)  # so that `up` stops here at the latest
    monkeypatch.setattr(host, "detect", lambda: unprivileged)
    file = tmp_path / "mine.yaml"
    file.write_text(HARDWARE)

    assert run([*words, "--hardware", str(file)]) == 2
    said = capsys.readouterr().err
    assert str(file) in said
    assert all(mistake in said for mistake in ("count must be 1 to 10000", "80Gigs", "did you mean attributes"))
    assert not list(state.glob("[!.]*"))
