"""Every job of our workflows, step by step in a clean copy of the repository; programs that install or take long only note their words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.check_workflows import workflows
from ci.run_workflow import Run, run_job, started
from tests.ci.conftest import Host, read

# `python3 -m venv FOLDER` makes an environment whose programs are these.
PYTHON = """
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin"; for each in python3 pip tox dra-testbed; do ln -sf {programs}/$each "$3/bin/$each"; done
elif [ "$1" != -c ]; then exec {python} "$@"
fi"""
# Each environment leaves what its job uploads.
TOX = """
echo "$*" >>{notes}/tox
IFS=, read -ra names <<<"$2"
for name in "${{names[@]}}"; do
  mkdir -p ".tox/$name/tmp/report"
  echo "$*" | tee ".tox/$name/tmp/junit.xml" >".tox/$name/tmp/report/report.yaml"
done"""


def jobs() -> Iterator[Any]:
    """All of them, with each corner of their matrices."""
    for file in workflows():
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            matrix = job.get("strategy", {}).get("matrix", {})
            for values in itertools.product(*matrix.values()):
                corner = dict(zip(matrix, values, strict=True))
                yield pytest.param(name, job, corner, id="-".join([name, *values]))


@pytest.fixture
def recorders(host: Host, root: Callable[[bool], None]) -> Host:
    """A runner's machine: no root but sudo, and nothing that is installed in earnest."""
    python = (host.programs / "python3").read_text().split("exec ")[1].split()[0]
    host.has("python3", PYTHON.format(programs=host.programs, python=python))
    host.has("tox", TOX.format(notes=host.notes))
    for name in ("pip", "apt-get", "docker", "kind"):
        host.has(name, f'echo "$*" >>{host.notes}/{name}')
    host.has_testbed("pass", 0)
    root(False)
    return host


def programs(job: dict[str, Any]) -> Iterator[str]:
    """What the steps run, as paths in the repository: the script, and the one that it runs as root."""
    for script in (step["run"] for step in job["steps"] if "run" in step):
        words = script.split()
        yield from words[:2] if words[0] == "ci/as-root" else words[:1]


def environments(job: dict[str, Any], matrix: dict[str, str]) -> list[str]:
    """The words that tox should get, in order."""
    found = []
    for step in job["steps"]:
        _, tox, words = step.get("run", "").partition("ci/tox ")
        for name, value in step.get("env", {}).items():
            words = words.replace(f'"${name}"', matrix[value.split("matrix.")[1].split()[0]])
        found += [words] if tox else []
    return found


@pytest.mark.parametrize(("name", "job", "matrix"), list(jobs()))
def test_a_job_runs_to_its_end_and_uploads_what_its_steps_left(
    recorders: Host, tmp_path: Path, name: str, job: dict[str, Any], matrix: dict[str, str]
) -> None:
    run: Run = started(tmp_path / "run", matrix=matrix)
    run_job(name, run)

    assert [outcome for _, outcome in run.steps if outcome != "success"] == [], run.steps
    own = [each for each, _ in run.steps if not each.startswith("actions/")]
    wanted = [step.get("run") or step["uses"] for step in job["steps"]]
    assert [each for each in own if each in wanted] == [each for each in wanted if not each.startswith("actions/")]
    assert [each for each in programs(job) if not os.access(run.workspace / each, os.X_OK)] == []
    assert read(recorders.notes / "tox").splitlines() == environments(job, matrix)
    uploads = [
        step for step in job["steps"] if "upload-artifact" in step.get("uses", "") or "./" in step.get("uses", "")
    ]
    assert len(run.artifacts) == len(uploads)
    assert all(list(folder.iterdir()) for folder in run.artifacts.values())


def test_a_script_that_may_not_be_executed_fails_its_job(recorders: Host, tmp_path: Path) -> None:
    run: Run = started(tmp_path / "run")
    (run.workspace / "ci/tox").chmod(0o644)
    run_job("quick", run)

    assert run.failed
