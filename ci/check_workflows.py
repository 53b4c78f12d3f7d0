"""Check our GitHub workflows, the action and the workflows in the docs: `python -m ci.check_workflows`, a part of `tox -e lint`.

It runs actionlint, which it builds once from the sources that ci/versions/go/actionlint pins, and checks this project's own rules.
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
from testbed.binaries.cache import BinaryCache
from testbed.binaries.toolchain import find_go
from testbed.process import run
from testbed.progress import Progress

ROOT = Path(__file__).resolve().parents[1]
ACTION = ROOT / "ci/action/action.yml"
PAGE = ROOT / "docs/ci.md"
_MODULE = ROOT / "ci/versions/go/actionlint"
_PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
_CALL = re.compile(r'"\$GITHUB_ACTION_PATH/(?P<own>[\w-]+)"$|(?P<other>(ci|\.ci)/[\w./-]+)( |$)|tox( |$)')
_MORE_THAN_A_CALL = re.compile(r"[;&|<>`\n]|\$\(")


def workflows() -> list[Path]:
    """Return the files of our workflows."""
    return sorted((ROOT / ".github/workflows").glob("*.yml"))


def check_pins(text: str) -> Iterator[str]:
    """Yield each action that is not pinned by a commit with its version in a comment, or that is pinned to two commits."""
    pins: dict[str, str] = {}
    for line in (each.strip().removeprefix("- ") for each in text.splitlines()):
        if not line.startswith("uses: ") or line.startswith("uses: ./"):
            continue
        if not _PINNED.match(line):
            yield f"not pinned by a commit with its version in a comment: {line}"
        repository, _, pin = line.removeprefix("uses: ").partition("@")
        if pins.setdefault("/".join(repository.split("/")[:2]), pin) != pin:
            yield f"pinned to two commits: {repository}"


def check_workflow(content: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a workflow: it must have read permissions only, a concurrency group and timeouts."""
    if content.get("permissions") != {"contents": "read"}:
        yield "permissions are not `contents: read`"
    if "concurrency" not in content:
        yield "no concurrency group"
    for name, job in content["jobs"].items():
        if "permissions" in job:
            yield f"job {name} has permissions of its own"
        if "timeout-minutes" not in job:
            yield f"job {name} has no timeout-minutes"
        yield from check_steps(job["steps"])


def check_steps(steps: list[dict[str, Any]], root: Path = ROOT) -> Iterator[str]:
    """Yield each step that is not one call of tox or of a script in ci/, so that a developer can run the same."""
    for script in (step["run"].strip() for step in steps if "run" in step):
        if "${{" in script:
            yield f"an expression in a shell command; pass it in env: {script}"
        calls = [_CALL.match(words) for words in (script, script.removeprefix("ci/as-root "))]
        if not all(calls) or _MORE_THAN_A_CALL.search(script):
            yield f"not a single call of tox or of a script in ci/: {script}"
        for path in (_path(call) for call in calls if call):
            if path and not os.access(root / path, os.X_OK):
                yield f"no executable file: {path}"


def _path(call: re.Match[str]) -> str:
    return f"ci/action/{call['own']}" if call["own"] else call["other"] or ""


def check_all() -> Iterator[str]:
    """Yield every breach of our own rules."""
    files = [*workflows(), ACTION]
    for file in workflows():
        yield from (f"{file.name}: {problem}" for problem in check_workflow(yaml.safe_load(file.read_text())))
    yield from (
        f"action.yml: {problem}" for problem in check_steps(yaml.safe_load(ACTION.read_text())["runs"]["steps"])
    )
    yield from check_pins("\n".join(file.read_text() for file in files))


def blocks(page: str) -> list[str]:
    """Return the YAML blocks of a page of the docs."""
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def as_workflow(action: dict[str, Any]) -> str:
    """Return the action's steps as a job: actionlint doesn't read actions."""
    inputs = {name: {"type": "string", **each} for name, each in action["inputs"].items()}
    job = {"runs-on": "ubuntu-24.04", "steps": action["runs"]["steps"]}
    return yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}}, "jobs": {"action": job}}, sort_keys=False)


def actionlint() -> Path:
    """Return the path of actionlint; build it if the cache doesn't have it."""
    sources = b"".join((_MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))
    store = BinaryCache()
    program = folders.cache() / "tools" / f"actionlint-{hashlib.sha256(sources).hexdigest()[:12]}-{store.arch}"
    if not program.exists():
        with Progress().step("building actionlint") as step, store.scratch() as scratch:
            go, made = find_go(_MODULE, store, step), scratch / "actionlint"
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
    """Yield actionlint's output for all workflows, the action's steps and the GitHub workflows in the docs."""
    # No linters of other languages: a host may or may not have them, and our workflows contain no scripts.
    argv = [str(program), "-no-color", "-shellcheck=", "-pyflakes="]
    named = {str(ACTION.relative_to(ROOT)): as_workflow(yaml.safe_load(ACTION.read_text()))}
    documented = [block for block in blocks(PAGE.read_text()) if "jobs:" in block]
    named |= {f"{PAGE.relative_to(ROOT)} ({number})": block for number, block in enumerate(documented, 1)}
    yield run([*argv, *map(str, workflows())], check=False, cwd=ROOT).stdout
    for name, text in named.items():
        yield run([*argv, "-stdin-filename", name, "-"], input=text, check=False, cwd=ROOT).stdout


def main() -> int:
    """Print all problems; return 1 if there are any."""
    problems = [*check_all(), *(text.rstrip() for text in lint(actionlint()) if text.strip())]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
