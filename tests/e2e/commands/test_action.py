"""The GitHub action from end to end: its scripts, in the order of its steps, on a real cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import folders
from tests.ci.runner import Runner

MUTANT = str(folders.data("manifests") / "drivers/mutants/fake-gpu-shares-one-device.yaml")


@dataclass(frozen=True)
class Use:
    """The inputs of the action, and the expected result with a correct driver."""

    inputs: dict[str, str]
    verdict: str
    mark: str


WHOLE = Use({"provider": "local"}, "conformant", "✅")
SOME = Use({"provider": "kind", "arguments": "-k 'two_claims or pool'"}, "partial", "🟡")


@pytest.fixture(
    scope="module", params=[pytest.param(WHOLE, id="local"), pytest.param(SOME, id="kind", marks=pytest.mark.kind)]
)
def use(request: pytest.FixtureRequest) -> Use:
    """Return the inputs for each provider that creates clusters."""
    inputs: Use = request.param
    return inputs


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the step `install` from this checkout; return the environment of the steps after it, with the cache of this host."""
    step = Runner(tmp_path_factory.mktemp("install")).run("install")
    assert step.code == 0
    assert step.outputs.keys() == {"bin", "digest"}
    return {"DRA_TESTBED_BIN": step.outputs["bin"], "DRA_TESTBED_CACHE": str(folders.cache())}


def test_a_correct_driver_gives_summary_outputs_and_report(use: Use, installed: dict[str, str], tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    judged = runner.judge(use.inputs, **installed)
    summary = runner.summarize(judged, **installed)

    assert judged.code == 0, summary
    assert judged.outputs == {"verdict": use.verdict, "report": str(runner.report), "exit-code": "0"}
    assert f"## {use.mark} gpu.dra-testbed.example is {use.verdict}" in summary
    assert {"report.yaml", "junit.xml", "events.jsonl", "run.log"} <= runner.uploaded()


def test_a_failing_driver_fails_the_step_and_its_verdict_is_in_the_summary(
    use: Use, installed: dict[str, str], tmp_path: Path
) -> None:
    runner = Runner(tmp_path)
    judged = runner.judge({**use.inputs, "driver": MUTANT, "arguments": "-k two_claims_from_one_template"}, **installed)
    summary = runner.summarize(judged, **installed)

    assert (judged.code, judged.outputs["verdict"], judged.outputs["exit-code"]) == (1, "failed", "1")
    assert "## ❌ gpu.dra-testbed.example is failed" in summary
    assert "| CLAIM-001 MUST | **fail** |" in summary.split("---|\n")[1].splitlines()[0]
    assert "`evidence/CLAIM-001`" in summary
    assert any(name.startswith("evidence/CLAIM-001/") for name in runner.uploaded())
