"""The parts of ci/release that need no package index. `tox -e wheel` runs all of it."""

from __future__ import annotations

import hashlib
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from ci.check_workflows import ROOT


@pytest.fixture(scope="module")
def release() -> ModuleType:
    loader = SourceFileLoader("release", str(ROOT / "ci/release"))
    module = module_from_spec(spec_from_loader("release", loader))  # type: ignore[arg-type] # it has a loader
    loader.exec_module(module)
    return module


def test_the_checksums_are_those_of_all_files(release: ModuleType, tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    release.write_checksums(tmp_path)

    sums = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in ("a", "b")]
    assert (tmp_path / "SHA256SUMS").read_text().splitlines() == sums


def test_a_second_release_replaces_the_first_and_keeps_other_files(release: ModuleType, tmp_path: Path) -> None:
    made, into = tmp_path / "made", tmp_path / "dist"
    for folder, names in (
        (made, ["dra_testbed-2.whl", "SHA256SUMS"]),
        (into, ["dra_testbed-1.whl", "SHA256SUMS", "notes"]),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).write_text(folder.name)
    release.replace(made, into)

    assert {file.name: file.read_text() for file in into.iterdir()} == {
        "dra_testbed-2.whl": "made", "SHA256SUMS": "made", "notes": "dist",
    }  # fmt: skip


@pytest.mark.parametrize(("extra", "refused"), [([], False), (["tests/test_it.py"], True)])
def test_a_wheel_with_other_top_level_names_is_refused(
    release: ModuleType, tmp_path: Path, extra: list[str], refused: bool
) -> None:
    wheel = tmp_path / "it.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        for name in ["testbed/a.py", "fake_driver/a.py", "dra_testbed-1.dist-info/METADATA", *extra]:
            content.writestr(name, "")

    if refused:
        with pytest.raises(SystemExit, match="tests"):
            release.check_top_level_names(wheel)
    else:
        release.check_top_level_names(wheel)


def test_a_program_that_fails_ends_the_release_with_its_output(release: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no such thing\nci/release: exit code 3 of: sh"):
        release.run("sh", "-c", "echo no such thing; exit 3")
