"""Run the steps of the GitHub action as a GitHub runner does. For the tests of the action, here and in tests/e2e."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ci.check_workflows import ACTION
from testbed import process


@dataclass(frozen=True)
class Step:
    """How a step ended: its exit code, its outputs, and its part of the job summary."""

    code: int
    outputs: dict[str, str]
    summary: str


@dataclass(frozen=True)
class Runner:
    """A runner with an empty workspace and an empty temporary folder."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """Return the folder in which every step starts."""
        return self.folder / "workspace"

    @property
    def report(self) -> Path:
        """Return the default report folder."""
        return self.workspace / "dra-testbed-report"

    def uploaded(self) -> set[str]:
        """Return the files of the report that GitHub uploads: hidden ones are left out."""
        files = {file.relative_to(self.report) for file in self.report.rglob("*") if file.is_file()}
        return {str(file) for file in files if not file.name.startswith(".")}

    def run(self, step: str, **variables: str) -> Step:
        """Run the script of a step of the action with these environment variables."""
        temporary, files = self.folder / "temp", self.folder / "files"
        for folder in (self.workspace, temporary, files):
            folder.mkdir(parents=True, exist_ok=True)
        output, summary = files / "output", files / "summary"
        for file in (output, summary):
            file.write_text("")
        github = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(temporary),
            "DRA_TESTBED_CACHE": str(temporary / "dra-testbed/cache"),
        }
        environment = {**os.environ, **github, **variables}
        done = process.run([ACTION.parent / step], cwd=self.workspace, env=environment, check=False, timeout=None)
        sys.stdout.write(done.stdout + done.stderr)  # pytest shows it when the test fails
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return Step(done.code, outputs, summary.read_text())

    def judge(self, inputs: dict[str, str], **variables: str) -> Step:
        """Run the step `judge` with these inputs of the action."""
        return self.run("judge", **as_variables(inputs), **variables)

    def summarize(self, judged: Step, **variables: str) -> str:
        """Return what the step `summary` writes after the step `judge`."""
        outputs = {"REPORT": judged.outputs.get("report", ""), "EXIT_CODE": judged.outputs.get("exit-code", "")}
        return self.run("summary", **outputs, **variables).summary


def as_variables(inputs: dict[str, str]) -> dict[str, str]:
    """Return inputs of the action as the environment variables that action.yml makes of them."""
    return {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
