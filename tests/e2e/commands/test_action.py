"""The GitHub action from end to end: its steps, in order, in a clean copy of the repository, on a real cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci.run_workflow import Run, run_action, started
from testbed import folders

MUTANT = "manifests/drivers/mutants/fake-gpu-shares-one-device.yaml"


@dataclass(frozen=True)
class Use:
    """What a vendor asks of the action, and what comes of it with a driver that is right."""

    inputs: dict[str, str]
    verdict: str
    mark: str


WHOLE = Use({"provider": "local"}, "conformant", "✅")
SOME = Use({"provider": "kind", "arguments": "-k 'two_claims or pool'"}, "partial", "🟡")


@pytest.fixture(
    scope="module", params=[pytest.param(WHOLE, id="local"), pytest.param(SOME, id="kind", marks=pytest.mark.kind)]
)
def use(request: pytest.FixtureRequest) -> Use:
    """Once for each provider that makes clusters."""
    asked: Use = request.param
    return asked


@pytest.fixture(scope="module")
def right(use: Use, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All steps with the driver that is right, the installation included."""
    run = started(tmp_path_factory.mktemp("action") / "run", cache=folders.cache())
    run_action(run.workspace / "ci/action", use.inputs, run)
    return run


@pytest.fixture
def installed(right: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first run has installed, for those who do not do that step again."""
    programs = right.folder / "temp/dra-testbed/venv/bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def files(run: Run) -> set[str]:
    """What lies in the artifact."""
    folder = run.artifacts["dra-testbed-report"]
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_the_right_driver_gives_summary_outputs_and_artifact(use: Use, right: Run) -> None:
    assert not right.failed, right.summary
    assert {name: outcome for name, outcome in right.steps if outcome != "success"} == {}
    assert (right.outputs["verdict"], right.outputs["exit-code"]) == (use.verdict, "0")
    assert Path(right.outputs["report"]) == right.workspace / "dra-testbed-report"
    assert f"## {use.mark} gpu.dra-testbed.example is {use.verdict}" in right.summary
    assert {"report.yaml", "junit.xml", "events.jsonl", "run.log"} <= files(right)


@pytest.mark.usefixtures("installed")
def test_a_driver_that_fails_makes_the_step_fail_with_the_verdict_in_the_summary(use: Use, tmp_path: Path) -> None:
    run = started(tmp_path / "run", skip=frozenset({"install"}), cache=folders.cache())
    run_action(
        run.workspace / "ci/action",
        {**use.inputs, "driver": MUTANT, "arguments": "-k two_claims_from_one_template"},
        run,
    )

    assert run.failed
    assert dict(run.steps)["judge"] == "failure"
    assert (run.outputs["verdict"], run.outputs["exit-code"]) == ("non-conformant", "1")
    assert "## ❌ gpu.dra-testbed.example is non-conformant" in run.summary
    assert "| CLAIM-001 MUST | **fail** |" in run.summary.split("---|\n")[1].splitlines()[0]
    assert "`evidence/CLAIM-001`" in run.summary
    assert any(name.startswith("evidence/CLAIM-001/") for name in files(run))
