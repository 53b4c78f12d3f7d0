"""Each page in docs/features, done as a reader would do it: its files written, its commands run, and what they print compared with it."""

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

ROOT = Path(__file__).parents[2]
NAME = "pages"
GROUPS = [tuple(group) for _, group in groupby(sorted(pages(), key=lambda page: page.up), key=lambda page: page.up)]


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
    group: tuple[Page, ...] = request.param
    folder = tmp_path_factory.mktemp("pages")
    for page in group:
        for name, content in page.files:
            (folder / name).write_text(content)
    dra(folder, "down", "--name", NAME)
    dra(folder, "up", "--name", NAME, *group[0].up)
    yield folder
    dra(folder, "down", "--name", NAME)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where kubectl is that cluster's."""
    lock = lock_for(effective(None, {}).kubernetes)
    programs = tmp_path_factory.mktemp("bin")
    (programs / "kubectl").symlink_to(binaries.ensure(lock, ["kubectl"], progress=Silent())["kubectl"])
    kubeconfig = folders.state() / NAME / "kubeconfig"
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("place", "page"),
    [pytest.param(group, page, id=page.name) for group in GROUPS for page in group],
    indirect=["place"],
    scope="module",
)
def test_a_page_shows_what_happens(place: Path, page: Page, environment: dict[str, str]) -> None:
    for step in page.steps:
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        shown = "\n".join(step.prints)
        assert step.is_as_shown(done.stdout), f"$ {step.command}\nprinted:\n{done.stdout}\nbut the page shows:\n{shown}"
