"""Check our GitHub workflows, the action and the workflows in the docs: `python -m ci.check_workflows`, a part of `tox -e lint`.

actionlint reads them all; it is built once from sources that ci/versions/go/actionlint pins. The rules of this house come on top.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed import folders
from testbed.binaries.cache import Store
from testbed.binaries.toolchain import go_for
from testbed.process import run
from testbed.progress import Progress

ROOT = Path(__file__).resolve().parents[1]
ACTION = ROOT / "ci/action/action.yml"
PAGE = ROOT / "docs/ci.md"
_MODULE = ROOT / "ci/versions/go/actionlint"
_PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
_SCRIPT = re.compile(r'"\$GITHUB_ACTION_PATH/(?P<own>[\w-]+)"$|(?P<other>(ci|\.ci)/[\w./-]+)( |$)|tox( |$)')


def workflows(root: Path = ROOT) -> list[Path]:
    """Ours."""
    return sorted((root / ".github/workflows").glob("*.yml"))


def check_pins(text: str) -> Iterator[str]:
    """Every action of others is pinned by its commit, with the version for people; and one action is one commit everywhere."""
    pins: dict[str, str] = {}
    for line in (each.strip().removeprefix("- ") for each in text.splitlines()):
        if not line.startswith("uses: ") or line.startswith("uses: ./"):
            continue
        if not _PINNED.match(line):
            yield f"not pinned by commit, with its version behind it: {line}"
        repository, _, pin = line.removeprefix("uses: ").partition("@")
        if pins.setdefault("/".join(repository.split("/")[:2]), pin) != pin:
            yield f"pinned to two commits: {repository}"


def check_workflow(content: dict[str, Any]) -> Iterator[str]:
    """It can only read, ends some day, and does not run twice for one branch."""
    if content.get("permissions") != {"contents": "read"}:
        yield "permissions are more, or other, than `contents: read`"
    if "concurrency" not in content:
        yield "there is no concurrency group"
    for name, job in content["jobs"].items():
        if "permissions" in job:
            yield f"job {name} has permissions of its own"
        if "timeout-minutes" not in job:
            yield f"job {name} has no timeout-minutes"
        yield from check_steps(job["steps"])


def check_steps(steps: list[dict[str, Any]], root: Path = ROOT) -> Iterator[str]:
    """What is run is tox, or a script that runs on a developer's machine as well; nothing is pasted into a shell."""
    for script in (step["run"] for step in steps if "run" in step):
        if "${{" in script:
            yield f"text is pasted into a shell, use env: {script}"
        for words in (script, script.removeprefix("ci/as-root ")):
            found = _SCRIPT.match(words.strip())
            if not found or "\n" in script.strip():
                yield f"neither tox nor a script of ci/: {script}"
                break
            path = f"ci/action/{found['own']}" if found["own"] else found["other"]
            if path and not os.access(root / path, os.X_OK):
                yield f"no such script, or it is not executable: {path}"


def check_all() -> Iterator[str]:
    """All rules, on all files of ours."""
    files = [*workflows(), ACTION]
    for file in workflows():
        yield from (f"{file.name}: {problem}" for problem in check_workflow(yaml.safe_load(file.read_text())))
    yield from (
        f"action.yml: {problem}" for problem in check_steps(yaml.safe_load(ACTION.read_text())["runs"]["steps"])
    )
    yield from check_pins("\n".join(file.read_text() for file in files))


def blocks(page: str) -> list[str]:
    """The YAML in a page of the docs."""
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def as_workflow(action: dict[str, Any]) -> str:
    """The action's steps as a job, for a linter that reads jobs only."""
    inputs = {name: {"type": "string", **each} for name, each in action["inputs"].items()}
    job = {"runs-on": "ubuntu-24.04", "steps": action["runs"]["steps"]}
    return yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"action": job}}, sort_keys=False)


def actionlint() -> Path:
    """The program; built when it is not there yet."""
    sources = b"".join((_MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))
    store = Store()
    program = folders.cache() / "tools" / f"actionlint-{hashlib.sha256(sources).hexdigest()[:12]}-{store.arch}"
    if not program.exists():
        with Progress().step("building actionlint") as step, store.scratch() as scratch:
            go, made = go_for(_MODULE, store, step), scratch / "actionlint"
            own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
            argv = [str(go.path), "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(made)]
            run(
                [*argv, "github.com/rhysd/actionlint/cmd/actionlint"],
                cwd=_MODULE,
                env={**os.environ, **own},
                timeout=900,
            )
            program.parent.mkdir(exist_ok=True)
            made.rename(program)
    return program


def lint(program: Path) -> Iterator[str]:
    """What actionlint says of all files, of the action's steps, and of the GitHub workflows in the docs."""
    # Without the linters of other languages that a host may or may not have: scripts are no part of our workflows.
    argv = [str(program), "-no-color", "-shellcheck=", "-pyflakes="]
    named = {str(ACTION.relative_to(ROOT)): as_workflow(yaml.safe_load(ACTION.read_text()))}
    told = [block for block in blocks(PAGE.read_text()) if "jobs:" in block]
    named |= {f"{PAGE.relative_to(ROOT)} ({number})": block for number, block in enumerate(told, 1)}
    yield run([*argv, *map(str, workflows())], check=False, cwd=ROOT).stdout
    for name, text in named.items():
        yield run([*argv, "-stdin-filename", name, "-"], input=text, check=False, cwd=ROOT).stdout


def main() -> int:
    """Print what is wrong."""
    problems = [*check_all(), *(text.rstrip() for text in lint(actionlint()) if text.strip())]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
