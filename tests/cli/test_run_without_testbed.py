"""A run whose own testbed does not come up: the logs are in the report folder, where CI keeps what there is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.bringup import steps, testbeds
from testbed.cli.main import run
from testbed.errors import TestbedError


class Broken:
    """A provider whose clusters write logs and never come up."""

    def __init__(self) -> None:
        self.logs = {"kind.log": "ERROR: port taken", "node-1/kubelet.log": "E1118 16:00:02.0 1 b.go:2] no cgroups"}
        self.deleted = 0

    def attach(self, *_: object) -> Any:
        return self

    def collect_logs(self, into: Path) -> None:
        for name, content in self.logs.items():
            (into / name).parent.mkdir(exist_ok=True)
            (into / name).write_text(content)

    def delete(self, *_: object) -> None:
        self.deleted += 1


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broken:
    made = Broken()
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)  # where the report goes
    monkeypatch.setattr(testbeds, "provider", lambda _: made)
    monkeypatch.setattr(steps, "begin", lambda *_: SimpleNamespace())
    monkeypatch.setattr(steps, "STEPS", (_fails,))
    return made


def _fails(_: object) -> None:
    raise TestbedError("the cluster did not come")


def kept(report: Path) -> Path:
    return report / "evidence/bring-up"


def test_the_logs_of_a_testbed_that_does_not_come_up_are_evidence(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--report", "mine"]) == 3
    said = capsys.readouterr().err

    assert broken.deleted == 1
    assert f"logs: {kept(tmp_path / 'mine')}\n" in said
    assert {name: (kept(tmp_path / "mine") / name).read_text() for name in broken.logs} == broken.logs
    error = (kept(tmp_path / "mine") / "error.txt").read_text()
    assert "the cluster did not come" in error
    assert "last error in node-1/kubelet.log: E1118" in error


def test_the_folder_serves_the_next_run_which_keeps_only_its_own(broken: Broken, tmp_path: Path) -> None:
    assert run(["run", "--report", "mine"]) == 3
    broken.logs = {"kind.log": "ERROR: no room"}
    assert run(["run", "--report", "mine"]) == 3

    assert sorted(path.name for path in kept(tmp_path / "mine").iterdir()) == ["error.txt", "kind.log"]
    assert (kept(tmp_path / "mine") / "kind.log").read_text() == "ERROR: no room"


@pytest.mark.parametrize("theirs", ["evidence/photo", "evidence/bring-up/photo", "report.yaml"])
def test_a_folder_that_is_not_ours_is_refused_and_stays(broken: Broken, tmp_path: Path, theirs: str) -> None:
    (tmp_path / "mine" / theirs).parent.mkdir(parents=True)
    (tmp_path / "mine" / theirs).write_text("theirs")

    assert run(["run", "--report", "mine"]) == 2
    assert [path.name for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [Path(theirs).name]


def test_what_somebody_put_beside_our_evidence_is_never_removed(broken: Broken, tmp_path: Path) -> None:
    assert run(["run", "--report", "mine"]) == 3
    (tmp_path / "mine/report.yaml").write_text("theirs")

    assert run(["run", "--report", "mine"]) == 2
    assert (tmp_path / "mine/report.yaml").read_text() == "theirs"


def test_logs_that_cannot_be_copied_hide_nothing(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()

    def collect(into: Path) -> None:
        (into / "kind.log").write_text("ERROR")
        (tmp_path / "mine/evidence").write_text("in the way")

    broken.collect_logs = collect  # type: ignore[method-assign]
    assert run(["run", "--report", "mine"]) == 3
    said = capsys.readouterr().err

    assert "the cluster did not come" in said
    assert "they could not be copied into the report" in said


def test_without_logs_there_is_no_evidence_and_no_folder(broken: Broken, tmp_path: Path) -> None:
    broken.attach = lambda *_: None  # type: ignore[method-assign]

    assert run(["run", "--report", "mine"]) == 3
    assert not (tmp_path / "mine").exists()
