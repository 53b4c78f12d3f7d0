"""Run the steps of one of our GitHub jobs, or of the action, in a clean copy of the repository, as a runner would.

    python -m ci.run_workflow action --input driver=my-driver.yaml     the steps of ci/action/action.yml
    python -m ci.run_workflow quick                                    a job of .github/workflows
    python -m ci.run_workflow e2e --matrix kubernetes=1.36

What somebody else's action would do (`uses:`) is not done but told; an upload looks whether its files are there and keeps them.
At the end: the job's page (GITHUB_STEP_SUMMARY), the outputs and the artifacts. Ends with 1 when a step failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ci.expressions import Unknown, fill, holds, text_of

ROOT = Path(__file__).resolve().parents[1]
_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")


@dataclass
class Run:
    """One job or action on its way: where it works, what it knows, and what came out."""

    workspace: Path
    folder: Path
    context: dict[str, Any]
    skip: frozenset[str] = frozenset()
    cache: Path | None = None
    failed: bool = False
    steps: list[tuple[str, str]] = field(default_factory=list)
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)


def clean_copy(into: Path, root: Path = ROOT) -> None:
    """What a commit of now would hold, and nothing else."""
    argv = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = root / name, into / name
        if source.is_symlink() or source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def started(
    folder: Path,
    *,
    skip: frozenset[str] = frozenset(),
    matrix: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Run:
    """A new run below the folder, with its clean copy. `cache` is what a runner would restore."""
    workspace, temporary = folder / "workspace", folder / "temp"
    workspace.mkdir(parents=True)
    temporary.mkdir()
    clean_copy(workspace)
    github = {
        "workspace": str(workspace),
        "event_name": "workflow_dispatch",
        "ref": "refs/heads/main",
        "workflow": "ci",
    }
    runner = {"os": "Linux", "arch": "X64", "temp": str(temporary)}
    context = {"github": github, "runner": runner, "matrix": dict(matrix or {}), "env": {}, "steps": {}, "inputs": {}}
    return Run(workspace, folder, context, skip, cache)


def run_job(name: str, run: Run) -> None:
    """The steps of a job of one of our workflows."""
    for file in sorted((run.workspace / ".github/workflows").glob("*.yml")):
        workflow = yaml.safe_load(file.read_text())
        if name in workflow["jobs"]:
            job = workflow["jobs"][name]
            for each in (workflow.get("env", {}), job.get("env", {})):
                run.context["env"] |= {key: fill(value, run.context) for key, value in each.items()}
            _run_steps(job["steps"], run)
            return
    raise Unknown(f"no workflow has a job {name}")


def run_action(action: Path, inputs: Mapping[str, str], run: Run) -> None:
    """The steps of a composite action, which sees its own inputs and steps and nothing of the job's."""
    content = yaml.safe_load((action / "action.yml").read_text())
    known = {name: text_of(each.get("default")) for name, each in content["inputs"].items()}
    if unknown := set(inputs) - set(known):
        raise Unknown(f"the action has no input {', '.join(sorted(unknown))}")
    outer = run.context
    github = {**outer["github"], "action_path": str(action)}
    run.context = {**outer, "github": github, "inputs": known | dict(inputs), "steps": {}}
    _run_steps(content["runs"]["steps"], run)
    run.outputs = {name: fill(each["value"], run.context) for name, each in content["outputs"].items()}
    run.context = outer


def tell(run: Run) -> None:
    """Print what a user of GitHub sees afterwards."""
    print(f"\n--- summary\n{run.summary or '(none)'}\n--- outputs")
    for name, value in run.outputs.items():
        print(f"{name}={value}")
    print("--- artifacts")
    for name, folder in run.artifacts.items():
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            print(f"{name}/{file.relative_to(folder)}")


def _run_steps(steps: list[dict[str, Any]], run: Run) -> None:
    for step in steps:
        name = str(step.get("id") or step.get("name") or step.get("run") or step.get("uses", "")).strip()
        outcome, outputs = _run_step(step, name, run)
        print(f"[{outcome}] {name}", flush=True)
        run.steps.append((name, outcome))
        run.failed = run.failed or outcome == "failure"
        if "id" in step:
            run.context["steps"][step["id"]] = {"outcome": outcome, "outputs": outputs}


def _run_step(step: dict[str, Any], name: str, run: Run) -> tuple[str, dict[str, str]]:
    if name in run.skip or not holds(step.get("if", "success()"), run.context, failed=run.failed):
        return "skipped", {}
    if "uses" in step:
        given = {key: fill(value, run.context) for key, value in step.get("with", {}).items()}
        return _use(step["uses"], given, run), {}
    environment = {key: fill(value, run.context) for key, value in step.get("env", {}).items()}
    return _run_script(fill(step["run"], run.context), environment, run)


def _use(action: str, given: dict[str, str], run: Run) -> str:
    """Our own action is run; an upload is kept; of the rest it is said that it would be."""
    if action.startswith("./"):
        run_action(run.workspace / action, given, run)
        return "failure" if run.failed else "success"
    if action.startswith("actions/upload-artifact@"):
        return _upload(given, run)
    if run.cache and action.startswith(("actions/cache@", "actions/cache/restore@")):
        place = run.workspace / given["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(run.cache.resolve())
        return "success"
    what = "it is this clean copy" if action.startswith("actions/checkout@") else "not done here"
    print(f"    {action}: {what} {given or ''}".rstrip())
    return "success"


def _upload(given: dict[str, str], run: Run) -> str:
    source, kept = run.workspace / given["path"], run.folder / "artifacts" / given["name"]
    if not source.exists():
        print(f"    there is nothing to upload: {source}")
        return "failure" if given.get("if-no-files-found") == "error" else "success"
    kept.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, kept, ignore=shutil.ignore_patterns(".*"))  # GitHub leaves hidden files out as well
    else:
        kept.mkdir()
        shutil.copy2(source, kept)
    run.artifacts[given["name"]] = kept
    return "success"


def _run_script(script: str, own: dict[str, str], run: Run) -> tuple[str, dict[str, str]]:
    """One `run:`, with the files through which it speaks to GitHub."""
    talk = Path(tempfile.mkdtemp(prefix="step-", dir=run.folder))
    files = {name: talk / name.lower() for name in _FILES}
    for file in files.values():
        file.touch()
    (talk / "script.sh").write_text(script)
    environment = {
        **os.environ,
        **_of_runner(run),
        **run.context["env"],
        **own,
        **{name: str(file) for name, file in files.items()},
    }
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(talk / "script.sh")]
    done = subprocess.run(argv, cwd=run.workspace, check=False, env=environment)
    run.summary += files["GITHUB_STEP_SUMMARY"].read_text()
    run.context["env"] |= _pairs(files["GITHUB_ENV"].read_text())
    if added := files["GITHUB_PATH"].read_text().splitlines():
        run.context["env"]["PATH"] = os.pathsep.join([*reversed(added), environment["PATH"]])
    return "failure" if done.returncode else "success", _pairs(files["GITHUB_OUTPUT"].read_text())


def _of_runner(run: Run) -> dict[str, str]:
    """The variables that a runner sets."""
    github = {f"GITHUB_{name.upper()}": value for name, value in run.context["github"].items()}
    runner = {f"RUNNER_{name.upper()}": value for name, value in run.context["runner"].items()}
    return {"CI": "true", "GITHUB_ACTIONS": "true", **github, **runner}


def _pairs(text: str) -> dict[str, str]:
    """`name=value` lines, and `name<<END` with all lines up to END."""
    found: dict[str, str] = {}
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if "<<" in line.partition("=")[0]:
            name, _, end = line.partition("<<")
            size = lines.index(end)
            found[name] = "\n".join(lines[:size])
            del lines[: size + 1]
        elif line:
            name, _, found_value = line.partition("=")
            found[name] = found_value
    return found


def main() -> int:
    """Read the words, run, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", metavar="JOB|action")
    parser.add_argument(
        "--input", action="append", default=[], metavar="K=V", help="an input of the action; repeatable"
    )
    parser.add_argument("--matrix", action="append", default=[], metavar="K=V", help="of the job's matrix; repeatable")
    parser.add_argument("--skip", action="append", default=[], metavar="ID", help="leave a step out; repeatable")
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="what actions/cache would restore: ~/.cache/dra-testbed"
    )
    parser.add_argument("--folder", type=Path, help="a new folder to work in, which stays; else a temporary one")
    given = parser.parse_args()
    inputs, matrix = (dict(word.split("=", 1) for word in words) for words in (given.input, given.matrix))
    with tempfile.TemporaryDirectory(prefix="dra-testbed-workflow-") as temporary:
        folder = given.folder or Path(temporary, "run")
        run = started(folder, skip=frozenset(given.skip), matrix=matrix, cache=given.cache)
        if given.what == "action":
            run_action(run.workspace / "ci/action", inputs, run)
        else:
            run_job(given.what, run)
        tell(run)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
