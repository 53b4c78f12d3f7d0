"""Follow each page in docs/features as a reader would: write its files, run its commands, and compare their output with the page.

`tox -e cluster` runs this on the local provider, `tox -e kind-cluster` on kind, with the name of a worker in place of `node-1`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from testbed import binaries, folders
from testbed.binaries import lock_for
from testbed.models.config import effective
from testbed.progress import Silent
from tests.e2e.pages import Page, pages

ROOT = Path(__file__).parents[3]
NAME = "pages"
GROUPS = [tuple(group) for _, group in groupby(sorted(pages(), key=lambda page: page.up), key=lambda page: page.up)]
PROVIDERS = {"local": (), "kind": (pytest.mark.kind,)}
WORKERS = "!node-role.kubernetes.io/control-plane"


def run_dra_testbed(folder: Path, *argv: str) -> None:
    """Run dra-testbed in a folder, as a user would."""
    program = [sys.executable, "-m", "testbed.cli.main", *argv]
    path = {"PYTHONPATH": str(ROOT), "DRA_TESTBED_STATE": str(folders.state())}
    done = subprocess.run(
        program, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Bring up a testbed, and return a folder with the files of all pages that share it."""
    provider: str
    group: tuple[Page, ...]
    provider, group = request.param
    folder = tmp_path_factory.mktemp("pages")
    write(folder, *group)
    run_dra_testbed(folder, "down", "--name", NAME)
    run_dra_testbed(folder, "up", "--name", NAME, "--provider", provider, *group[0].up)
    yield folder
    run_dra_testbed(folder, "down", "--name", NAME)


def write(folder: Path, *group: Page) -> None:
    for page in group:
        for name, content in page.files:
            (folder / name).write_text(content)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which kubectl uses the testbed."""
    lock = lock_for(effective(None, {}).kubernetes)
    programs = tmp_path_factory.mktemp("bin")
    (programs / "kubectl").symlink_to(binaries.ensure(lock, ["kubectl"], progress=Silent())["kubectl"])
    kubeconfig = folders.state() / NAME / "kubeconfig"
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}


def printed(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(
    ("folder", "page"),
    [
        pytest.param((provider, group), page, id=f"{provider}-{page.name}", marks=marks)
        for provider, marks in PROVIDERS.items()
        for group in GROUPS
        for page in group
    ],
    indirect=["folder"],
    scope="module",
)
def test_a_page_shows_the_output_of_its_commands(folder: Path, page: Page, environment: dict[str, str]) -> None:
    first_worker = f"kubectl get nodes -l '{WORKERS}' -o jsonpath='{{.items[0].metadata.name}}'"
    adapted = page.with_node(printed(first_worker, folder, environment))
    write(folder, adapted)
    try:
        for step in adapted.steps:
            found, shown = printed(step.command, folder, environment), "\n".join(step.output)
            sys.stdout.write(f"$ {step.command}\n{found}")  # -rP shows it
            assert step.matches(found), f"$ {step.command}\nprinted:\n{found}\nbut the page shows:\n{shown}"
    except AssertionError:  # release the devices for the other pages
        for file, _ in adapted.files:
            printed(f"kubectl delete --ignore-not-found -f {file}", folder, environment)
        raise
