"""A host where the action's steps run without a cluster: `dra-testbed` and other programs are shell scripts that record their calls."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci.check_workflows import ROOT
from testbed.reporting import report

STARTED = {
    "event": "run-started", "time": 1.0, "patience": 1.0,
    "generated": {"at": "2026-01-01T00:00:00+00:00", "suite": "1", "catalogue": "sha256:0", "python": "3", "pytest": "9"},
    "subject": {"driver": "gpu.example", "driver_file": "gpu", "digest": "sha256:1"},
    "environment": {"testbed": "t", "provider": "local", "kubernetes": "v1.37.1", "nodes": 2, "runtime": "c", "hardware": "unknown"},
}  # fmt: skip
KNOWN = {
    "id": "T-001",
    "sentence": "It works.",
    "level": "MUST",
    "tier": "e2e",
    "source": "here",
    "tests": ["a.py::test_1"],
}


@dataclass(frozen=True)
class Host:
    """A folder of programs that is first on the PATH, and a folder for their records."""

    programs: Path
    notes: Path
    python: str = sys.executable

    def has(self, name: str, script: str) -> None:
        """Add a program that is a shell script."""
        file = self.programs / name
        file.write_text(f"#!/usr/bin/env bash\n{script}\n")
        file.chmod(0o755)

    def has_testbed(self, verdict: str, code: int) -> None:
        """Add a dra-testbed whose run gives this verdict and exit code; with '' it breaks before there is a verdict."""
        done = {
            "event": "test-finished",
            "time": 2.0,
            "id": "T-001",
            "test": "a.py::test_1",
            "verdict": verdict,
            "seconds": 1.0,
        }
        failure = {
            "message": "expected two\n  likely cause: one bug" if verdict == "fail" else "",
            "evidence": "evidence/T-001",
        }
        end = {"event": "run-finished", "time": 3.0, "status": code}
        log = [STARTED, {"event": "selected", "time": 1.0, "requirements": [KNOWN], "digest": "x"}, done | failure, end]
        made = self.programs.parent / "made"
        (made / "evidence/T-001").mkdir(parents=True, exist_ok=True)
        (made / "evidence/T-001/pods.yaml").write_text("pod")
        (made / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in log if verdict))
        if verdict:
            report.write(made)
        self.has(
            "dra-testbed",
            f"""
printf '%s\\n' "$@" >{self.notes}/argv
for word in "$@"; do case "$word" in --report=*) report="${{word#--report=}}";; esac; done
echo "the testbed is up"; echo "and it says why it stops" >&2
{f'cp -r {made} "$report"' if verdict else ":"}
exit {code}""",
        )

    def argv(self) -> list[str]:
        """Return the arguments that dra-testbed got."""
        return (self.notes / "argv").read_text().splitlines()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    programs, notes = tmp_path / "programs", tmp_path / "notes"
    programs.mkdir()
    notes.mkdir()
    made = Host(programs, notes)
    made.has("python3", f'exec {sys.executable} "$@"')
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in [each for each in os.environ if each.startswith(("INPUT_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    return made


@pytest.fixture
def root(host: Host) -> Callable[[bool], None]:
    """Decide whether `id` reports root, and add a sudo that records its arguments and runs them."""

    def answer(really: bool) -> None:
        host.has("id", 'case "$1" in -u) echo ' + ("0" if really else "1001") + ";; *) echo 1001;; esac")
        host.has(
            "sudo",
            f'echo "$@" >>{host.notes}/sudo\nwhile [[ "$1" == --* ]]; do shift; done\n[ "$1" = chown ] || exec "$@"',
        )

    return answer


def read(file: Path) -> Any:
    """Return the content of a file, or '' if there is none."""
    return file.read_text() if file.exists() else ""
