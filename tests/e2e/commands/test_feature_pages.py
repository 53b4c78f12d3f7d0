"""Each page in docs/features, done as a reader would do it: its files written, its commands run, and what they print compared with it.

On local by `tox -e cluster`, and on kind by `tox -e kind-cluster`, where a reader puts the name of a worker in the place of `node-1`.
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


def dra(folder: Path, *argv: str) -> None:
    """Run dra-testbed in a folder, as a user would."""
    program = [sys.executable, "-m", "testbed.cli.main", *argv]
    path = {"PYTHONPATH": str(ROOT), "DRA_TESTBED_STATE": str(folders.state())}
    done = subprocess.run(
        program, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files of pages that want the same testbed, and that testbed."""
    provider: str
    group: tuple[Page, ...]
    provider, group = request.param
    folder = tmp_path_factory.mktemp("pages")
    write(folder, *group)
    dra(folder, "down", "--name", NAME)
    dra(folder, "up", "--name", NAME, "--provider", provider, *group[0].up)
    yield folder
    dra(folder, "down", "--name", NAME)


def write(folder: Path, *pages_of_it: Page) -> None:
    for page in pages_of_it:
        for name, content in page.files:
            (folder / name).write_text(content)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where kubectl is that cluster's."""
    lock = lock_for(effective(None, {}).kubernetes)
    programs = tmp_path_factory.mktemp("bin")
    (programs / "kubectl").symlink_to(binaries.ensure(lock, ["kubectl"], progress=Silent())["kubectl"])
    kubeconfig = folders.state() / NAME / "kubeconfig"
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}


def printed(command: str, place: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(
    ("place", "page"),
    [
        pytest.param((provider, group), page, id=f"{provider}-{page.name}", marks=marks)
        for provider, marks in PROVIDERS.items()
        for group in GROUPS
        for page in group
    ],
    indirect=["place"],
    scope="module",
)
def test_a_page_shows_what_happens(place: Path, page: Page, environment: dict[str, str]) -> None:
    first = f"kubectl get nodes -l '{WORKERS}' -o jsonpath='{{.items[0].metadata.name}}'"
    here = page.with_node(printed(first, place, environment))
    write(place, here)
    try:
        for step in here.steps:
            found, shown = printed(step.command, place, environment), "\n".join(step.prints)
            sys.stdout.write(f"$ {step.command}\n{found}")  # -rP shows it
            assert step.is_as_shown(found), f"$ {step.command}\nprinted:\n{found}\nbut the page shows:\n{shown}"
    except AssertionError:  # the pages after it want the devices
        for file, _ in here.files:
            printed(f"kubectl delete --ignore-not-found -f {file}", place, environment)
        raise
