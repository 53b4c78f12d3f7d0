"""A run whose testbed does not come up: logs and reason are in the report folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.bringup import testbeds
from testbed.cli.main import run
from testbed.conformance import events, report_folder
from testbed.conformance.events import EventLog
from testbed.errors import TestbedError, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.reporting import report
from tests.reporting.test_report import STARTED


class Broken:
    """A provider and its procedure. Its clusters write logs and never come up."""

    def __init__(self) -> None:
        self.steps: tuple[Callable[[object], None], ...] = (_fails,)
        self.logs = {"kind.log": "ERROR: port taken", "node-1/kubelet.log": "E1118 16:00:02.0 1 b.go:2] no cgroups"}
        self.deleted = 0

    def check(self, *_: object) -> None:
        """Find nothing wrong."""

    def remove_objects(self, *_: object) -> None:
        """Remove nothing."""

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
    monkeypatch.setattr(testbeds, "procedure_of", lambda _: made)
    return made


def _fails(_: object) -> None:
    raise TestbedError("the cluster did not come")


def kept(report: Path) -> Path:
    return report / "evidence/bring-up"


def test_logs_of_a_failed_bring_up_are_evidence(
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


def test_the_next_run_replaces_the_logs(broken: Broken, tmp_path: Path) -> None:
    assert run(["run", "--report", "mine"]) == 3
    broken.logs = {"kind.log": "ERROR: no room"}
    assert run(["run", "--report", "mine"]) == 3

    assert sorted(path.name for path in kept(tmp_path / "mine").iterdir()) == ["error.txt", "kind.log"]
    assert (kept(tmp_path / "mine") / "kind.log").read_text() == "ERROR: no room"


@pytest.mark.parametrize("theirs", ["evidence/photo", "evidence/bring-up/photo", "report.yaml"])
def test_a_foreign_folder_is_refused_and_not_changed(broken: Broken, tmp_path: Path, theirs: str) -> None:
    (tmp_path / "mine" / theirs).parent.mkdir(parents=True)
    (tmp_path / "mine" / theirs).write_text("theirs")

    assert run(["run", "--report", "mine"]) == 2
    assert [path.name for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [Path(theirs).name]


def test_an_error_while_copying_logs_does_not_hide_the_first_error(
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


def test_without_logs_there_is_a_report_and_no_evidence(broken: Broken, tmp_path: Path) -> None:
    broken.attach = lambda *_: None  # type: ignore[method-assign]

    assert run(["run", "--report", "mine"]) == 3
    assert reported(tmp_path / "mine")["reasons"][0] == "the testbed did not come up: the cluster did not come"
    assert not (tmp_path / "mine/evidence").exists()


def reported(folder: Path) -> Any:
    """Return the report, which must match its schema."""
    made = yaml.safe_load((folder / "report.yaml").read_text())
    DriverConformanceReport.model_validate_json(json.dumps(made))
    assert (folder / "junit.xml").exists()
    return made


def test_a_failed_bring_up_leaves_an_incomplete_report_with_the_reason(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--report", "mine"]) == 3

    made = reported(tmp_path / "mine")
    assert (made["result"], made["finished"], made["requirements"]) == ("incomplete", False, [])
    assert made["reasons"][0] == "the testbed did not come up: the cluster did not come (evidence/bring-up)"
    assert made["environment"]["provider"] == "local"


@pytest.mark.parametrize(
    ("ends", "code", "why"),
    [
        (TestbedError("the cluster did not come"), 3, "the cluster did not come"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit(143), 143, "interrupted"),
        (ZeroDivisionError("?"), 3, "ZeroDivisionError: ?"),
    ],
)
def test_a_failed_bring_up_replaces_the_report_of_an_earlier_run(
    broken: Broken, tmp_path: Path, ends: BaseException, code: int, why: str
) -> None:
    _earlier(tmp_path / "mine")

    def fails(_: object) -> None:
        raise ends

    broken.steps = (fails,)
    assert run(["run", "--report", "mine"]) == code
    assert reported(tmp_path / "mine")["reasons"][0] == f"the testbed did not come up: {why} (evidence/bring-up)"


def test_a_run_killed_during_bring_up_has_an_incomplete_report(broken: Broken, tmp_path: Path) -> None:
    _earlier(tmp_path / "mine")
    seen: list[Any] = []
    broken.steps = (lambda _: seen.append(reported(tmp_path / "mine")), _fails)
    run(["run", "--report", "mine"])

    assert (seen[0]["result"], seen[0]["finished"]) == ("incomplete", False)
    assert seen[0]["reasons"][0] == "the run ended before the first test"


@pytest.mark.parametrize(
    "words", [["--driver", "fake-gpus"], ["--kubernetes", "1.99"], ["--feature-gate", "Foo=true"], ["-k", "no_such"]]
)
def test_a_refused_request_keeps_the_report_of_an_earlier_run(
    broken: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    _earlier(tmp_path / "mine")
    before = (tmp_path / "mine/report.yaml").read_text()

    with report_folder.reserve(tmp_path / "mine"):
        assert run(["run", "--report", "mine", *words]) == 2
    assert "another run" not in capsys.readouterr().err
    assert (tmp_path / "mine/report.yaml").read_text() == before


def test_a_request_that_the_cluster_refuses_keeps_the_report_of_an_earlier_run(broken: Broken, tmp_path: Path) -> None:
    _earlier(tmp_path / "mine")
    before = (tmp_path / "mine/report.yaml").read_text()

    def refuses(*_: object) -> Any:
        raise UsageError("the kubeconfig has no such context")

    broken.check = refuses  # type: ignore[method-assign]
    assert run(["run", "--report", "mine"]) == 2
    assert (tmp_path / "mine/report.yaml").read_text() == before


def _earlier(folder: Path) -> None:
    """Write the report of a finished run."""
    log = EventLog(folder)
    report_folder.start_report(log.folder)
    (folder / events.FILE).write_text(
        json.dumps(STARTED) + "\n" + json.dumps({"event": "run-finished", "time": 1}) + "\n"
    )
    report.write(folder)
