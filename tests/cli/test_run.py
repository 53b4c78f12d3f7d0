from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import bringup, folders
from testbed.bringup import testbeds
from testbed.cli.main import run
from testbed.conformance import report_folder, versions
from testbed.errors import TestbedError, UsageError
from testbed.kube.ownership import Owner
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import RunRequest
from testbed.runs import pytest_process, several
from testbed.waiting import Budget, set_patience
from tests.fakes import cluster

OWNER = Owner("t", "0123456789ab")


class Stage:
    """Replaces bringup and pytest, and records their calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.asked: list[RunRequest] = []
        self.verdict = "pass"
        self.verdicts: list[str] = []
        self.failure: BaseException | None = None
        self.trouble: BaseException | None = None

    def bring_up(
        self, config: Any, _progress: Any, *, ephemeral: bool, evidence: Any = None, begun: Any = lambda: None
    ) -> Any:
        assert ephemeral
        begun()
        self.done.append("up")
        if self.trouble:
            raise self.trouble
        return bringup.Testbed(config.name, Path("/state"), None, None, config, None, OWNER)  # type: ignore[arg-type]  # the parts that are not looked at

    def tear_down(self, name: str, _progress: Any) -> bool:
        self.done.append("down" if name.startswith("run-") else f"down {name}")
        return True

    def keep(self, _name: str) -> None:
        self.done.append("keep")

    def run_suites(self, request: RunRequest) -> DriverConformanceReport:
        self.asked.append(request)
        if self.failure:
            raise self.failure
        return _report(self.verdicts.pop(0) if self.verdicts else self.verdict)


def _report(verdict: str) -> DriverConformanceReport:
    text = {
        "generated": {"at": "now", "suite": "1", "catalogue": "x", "python": "3", "pytest": "9"},
        "subject": {"driver": "gpu.example", "driverFile": "gpu", "digest": "x"},
        "environment": {"testbed": "t", "provider": "local", "kubernetes": "v1.37.0", "nodes": 2, "runtime": "c"},
        "result": {"pass": "conformant", "fail": "failed"}.get(verdict, "incomplete"),
        "finished": verdict != "none", "seconds": 1.0, "patience": 1.0, "statistics": {},
        "requirements": [
            {"id": "T-001", "sentence": "It works.", "level": "MUST", "tier": "e2e", "source": "here",
             "verdict": None if verdict == "none" else verdict}
        ],
    }  # fmt: skip
    return DriverConformanceReport.model_validate_json(json.dumps(text))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    made = Stage()
    monkeypatch.chdir(tmp_path)  # where the report goes
    for name in ("bring_up", "tear_down", "keep"):
        monkeypatch.setattr(bringup, name, getattr(made, name))
    monkeypatch.setattr(bringup, "attach", lambda _: cluster.make())
    monkeypatch.setattr(pytest_process, "run_suites", made.run_suites)
    return made


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("command", ["run", "up"])
def test_patience_also_applies_to_bring_up(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    bring_up = bringup.bring_up

    def waiting(*words: Any, **options: Any) -> Any:
        seen.append(Budget("machine boot", 20, "a test").effective_seconds)
        return bring_up(*words, **{"ephemeral": True, **options})

    monkeypatch.setattr(bringup, "bring_up", waiting)
    try:
        assert run([command, "--patience", "10"]) == 0
    finally:
        set_patience(1.0)

    assert seen == [200]


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("pass", 0), ("fail", 1), ("error", 3), ("timeout", 4), ("blocked", 4), ("none", 4), ("flaky", 4)],
)
def test_the_exit_code_depends_on_the_verdict_and_the_testbed_is_removed(stage: Stage, verdict: str, code: int) -> None:
    stage.verdict = verdict
    assert run(["run"]) == code
    assert stage.done == ["up", "down"]


@pytest.mark.parametrize("failure", [TestbedError("?"), KeyboardInterrupt(), SystemExit(143), ZeroDivisionError()])
def test_the_testbed_is_removed_however_the_run_ends(stage: Stage, failure: BaseException) -> None:
    stage.failure = failure
    assert run(["run"]) in (3, 130, 143)
    assert stage.done == ["up", "down"]


@pytest.mark.parametrize(
    ("keep", "verdict", "done"),
    [
        ("never", "fail", ["up", "down"]),
        ("on-failure", "fail", ["up", "keep"]),
        ("on-failure", "pass", ["up", "down"]),
        ("always", "pass", ["up", "keep"]),
    ],
)
def test_keep_decides_if_the_testbed_stays(stage: Stage, keep: str, verdict: str, done: list[str]) -> None:
    stage.verdict = verdict
    run(["run", "--keep", keep])
    assert stage.done == done


_BOTH = ["--driver", "fake-gpu", "--driver", "fake-nic"]


@pytest.fixture
def two_drivers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Let the second driver be ready at once: the fake cluster has only the first one."""
    for name in ("wait_ready", "refuse_wrong_names"):
        monkeypatch.setattr(several, name, lambda *_: None)
    return stage


def test_several_drivers_are_installed_once_and_judged_in_folders_of_their_own(
    two_drivers: Stage, tmp_path: Path
) -> None:
    assert run(["run", *_BOTH, "--report", "out", "--nodes", "1"]) == 0
    assert two_drivers.done == ["up", "down"]
    first, second = two_drivers.asked
    assert first.new_testbed
    assert first.new_testbed.driver == first.driver
    assert (second.testbed, second.new_testbed, second.profile) == (first.testbed, None, "core")
    assert [each.report for each in two_drivers.asked] == [tmp_path / "out/fake-gpu", tmp_path / "out/fake-nic"]
    assert [each.driver and each.driver.name for each in two_drivers.asked] == ["fake-gpu.yaml", "fake-nic.yaml"]


@pytest.mark.parametrize(
    ("verdicts", "code"), [(["pass", "fail"], 1), (["fail", "error"], 1), (["error", "pass"], 3), (["pass", "pass"], 0)]
)
def test_the_worst_result_of_several_drivers_decides(two_drivers: Stage, verdicts: list[str], code: int) -> None:
    two_drivers.verdicts = verdicts
    assert run(["run", *_BOTH, "--testbed", "mine"]) == code
    assert len(two_drivers.asked) == 2


def test_no_further_driver_is_judged_after_an_interrupt(two_drivers: Stage) -> None:
    two_drivers.verdict = "none"
    assert run(["run", *_BOTH]) == 4
    assert len(two_drivers.asked) == 1


def test_a_further_driver_file_that_installs_its_driver_is_refused(
    two_drivers: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--driver", "fake-nic", "--driver", "fake-gpu"]) == 2
    assert "driver file fake-gpu installs its driver, but only the first" in capsys.readouterr().err
    assert run(["run", "--driver", "fake-gpu", "--driver", "fake-gpu"]) == 2
    assert "two driver files have the name fake-gpu" in capsys.readouterr().err
    assert two_drivers.done == []


def test_an_existing_testbed_is_used_and_not_removed(stage: Stage) -> None:
    assert run(["run", "--testbed", "mine"]) == 0
    assert stage.done == []
    assert stage.asked[0].testbed == "mine"


def test_the_options_become_one_request(stage: Stage, tmp_path: Path) -> None:
    words = [
        "--tier",
        "e2e",
        "--tier",
        "wire",
        "-k",
        "cats",
        "-n",
        "2",
        "--report",
        "out",
        "--patience",
        "3",
        "-v",
        "--fail-on",
        "must",
    ]
    run(["run", *words, "--keep", "always", "--nodes", "3"])
    request = stage.asked[0]
    assert request.fail_on == "must"
    assert (request.tiers, request.keyword, request.workers) == ((Tier.E2E, Tier.WIRE), "cats", 2)
    assert (request.report, request.patience, request.verbose, request.keep) == (tmp_path / "out", 3, True, "always")
    assert request.new_testbed
    assert (request.testbed, request.new_testbed.nodes) == (request.new_testbed.name, 3)
    assert request.driver == request.new_testbed.driver


@pytest.mark.parametrize(
    ("words", "profile"), [([], "core"), (["--tier", "e2e"], "full"), (["--profile", "full"], "full")]
)
def test_the_profile_is_chosen_on_the_command_line(stage: Stage, words: list[str], profile: str) -> None:
    run(["run", *words])
    assert stage.asked[0].profile == profile


def test_tests_run_side_by_side_by_default(stage: Stage) -> None:
    run(["run"])
    run(["run", "-n", "0"])
    assert [each.workers for each in stage.asked] == ["auto", 0]
    assert run(["run", "-n", "many"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--testbed", "mine", "--nodes", "3"], "--nodes is for a new testbed"),
        (["--testbed", "mine", "--feature-gate", "A=true"], "--feature-gate"),
        (["--driver", "none"], "nothing to judge"),
        (["-o", "json"], "--plan"),
        (["--keep", "sometimes"], "sometimes"),
        (["--patience", "0"], "patience"),
        (["--nodes", "0"], "--nodes"),
        (["--profile", "cor"], "there is no profile cor"),
        (["-k", "two_cats and ("], "Wrong expression passed to '-k'"),
        (["-k", "two_dogs_from_one_template"], "did you mean test_two_claims_from_one_template"),
        (["-k", "CLAIM-991"], "did you mean CLAIM-"),
    ],
)
def test_wrong_usage_touches_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(["run", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert stage.done == []


def _write_earlier_report(folder: Path, driver: str, digest: str = "x") -> None:
    earlier = _report("fail").model_dump(mode="json", by_alias=True)
    earlier["subject"] |= {"driver": driver, "digest": digest}
    folder.mkdir()
    (folder / "report.yaml").write_text(yaml.safe_dump(earlier))


@pytest.mark.parametrize("words", [[], ["--plan"], ["--testbed", "mine", "--driver", "fake-gpu"]])
def test_failures_in_the_report_of_another_driver_are_not_repeated(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    _write_earlier_report(tmp_path / "earlier", "gpu.example")
    assert run(["run", "--failed", "earlier", *words]) == 2
    assert "earlier/report.yaml is about the driver gpu.example, but " in capsys.readouterr().err
    assert not stage.done
    assert not stage.asked


def test_a_driver_file_that_changed_since_the_earlier_report_is_noted(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _write_earlier_report(tmp_path / "earlier", "gpu.dra-testbed.example")
    assert run(["run", "--failed", "earlier"]) == 0
    assert "fake-gpu.yaml has changed since earlier/report.yaml was written" in " ".join(
        capsys.readouterr().err.split()
    )
    assert stage.asked[0].failed == ("T-001",)


@pytest.mark.usefixtures("stage")
def test_the_same_driver_file_as_in_the_earlier_report_is_not_noted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    digest = versions.describe(folders.data("manifests") / "drivers/fake-gpu.yaml", {})["digest"]
    _write_earlier_report(tmp_path / "earlier", "gpu.dra-testbed.example", str(digest))
    assert run(["run", "--failed", "earlier"]) == 0
    assert "note:" not in capsys.readouterr().err


def test_a_report_folder_that_another_run_uses_is_refused_first(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with report_folder.reserve(tmp_path / "dra-testbed-report"):
        assert run(["run"]) == 2
    assert "another run is writing its report" in capsys.readouterr().err
    assert stage.done == []
    assert run(["run"]) == 0
    assert run(["run"]) == 0


def _json(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        assert run([*arguments, "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def test_the_plan_needs_no_cluster(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    plan = _json(capsys)("run", "--plan")
    assert {row["plan"] for row in plan} == {"run"}
    assert stage.done == []


@pytest.mark.parametrize(
    "flags", [["--kubernetes", "1.99"], ["--feature-gate", "Foo=true"], ["--driver", "no-such-driver"]]
)
def test_the_plan_refuses_what_the_run_would_refuse(stage: Stage, flags: list[str]) -> None:
    assert run(["run", "--plan", *flags]) == 2
    assert stage.done == []


def test_an_empty_testbed_name_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringup, "attach", testbeds.attach)

    assert run(["run", "--testbed", ""]) == 2
    assert stage.done == []


def test_the_plan_for_an_existing_testbed_uses_its_facts(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    plan = _json(capsys)("run", "--plan", "--testbed", "fake", "--tier", "wire")
    assert {row["plan"] for row in plan} - {"not-applicable"} == {"excluded", "cluster-unsupported"}


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "SHARE-001" in {row["id"] for row in _json(capsys)("list")}
    assert run(["list"]) == 0
    assert "Pods that refer to the same ResourceClaim" in capsys.readouterr().out


def test_a_requirement_is_explained_with_its_manifest_and_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "share-001"]) == 0
    shown = capsys.readouterr().out
    assert "Pods that refer to the same ResourceClaim must see the same device." in shown
    assert "resourceClaimName: shared" in shown
    assert "def test_two_pods_share_one_claim(scenario):" in shown
    assert list(_json(capsys)("explain", "SHARE-001")["manifests"]) == ["sharing/two-pods-one-claim.yaml"]


@pytest.mark.parametrize(
    ("wanted", "devices"), [("SHARE-001", "1"), ("CLAIM-001", "2 on one node"), ("CLAIM-005", "2")]
)
def test_explain_shows_the_devices_per_node(wanted: str, devices: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", wanted]) == 0
    assert f"devices:  {devices}, nodes: 1\n" in capsys.readouterr().out


def test_explain_shows_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "CLAIM-024"]) == 0
    assert "\ngiven:    no node can use more devices than one allocation can contain\n" in capsys.readouterr().out


def test_an_unknown_requirement_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "SHARE-01"]) == 2
    assert "did you mean SHARE-01" in capsys.readouterr().err


def test_requirements_without_a_test_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "-o", "json"]) == 0
    listed = {each["id"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["REG-101"]["test"] == ""
    assert listed["CLAIM-001"]["test"].endswith("::test_two_claims_from_one_template")

    assert run(["explain", "REG-101"]) == 0
    said = capsys.readouterr().out
    assert "test:     none yet" in said
    assert "---" not in said


def test_the_plan_names_assumed_gates(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--plan", "--testbed", "fake"]) == 0
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("assumed "))
    assert "ResourceHealthStatus on" in said
    assert "the defaults of Kubernetes v1.37.0" in said


def test_requirements_without_a_test_are_not_planned(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--plan", "--profile", "full", "-o", "json"]) == 0
    planned = {each["id"] for each in json.loads(capsys.readouterr().out)}
    assert "CLAIM-001" in planned
    assert "REG-101" not in planned


def test_the_plan_excludes_tests_that_are_not_selected(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    plan = _json(capsys)("run", "--plan", "-k", "two_claims_from_one_template")
    assert [row["id"] for row in plan if row["plan"] == "run"] == ["CLAIM-001"]
    assert {row["reason"] for row in plan if row["plan"] == "excluded"} == {"not selected on the command line"}


def test_the_help_explains_the_name_of_a_new_testbed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--help"]) == 0
    assert "for `run`, a new name: run-…" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_testbed_leaves_no_report_folder(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def attach(_: str) -> Any:
        raise UsageError("there is no testbed mine")

    monkeypatch.setattr(bringup, "attach", attach)
    assert run(["run", "--testbed", "mine"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_up_waits_until_further_drivers_are_ready(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringup, "bring_up", lambda config, _progress: replace(cluster.make(), config=config))
    waited: list[str] = []
    monkeypatch.setattr(several, "wait_until_ready", lambda _testbed, found: waited.append(found.name))
    assert run(["up", *_BOTH]) == 0
    assert waited == ["fake-nic"]
    assert run(["up", "--driver", "fake-nic", "--driver", "fake-gpu"]) == 2
    assert stage.done == []
