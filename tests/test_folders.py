"""Where things lie, in a checkout and in a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from testbed import folders
from testbed.errors import TestbedError
from testbed.folders import Data


@pytest.mark.parametrize("name", get_args(Data))
def test_data_is_found_in_a_checkout(name: Data) -> None:
    assert folders.data(name).exists()


def test_data_is_found_in_a_wheel_where_it_lies_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "testbed/_data/suites"
    shipped.mkdir(parents=True)
    monkeypatch.setattr(folders, "__file__", str(tmp_path / "testbed/folders.py"))

    assert folders.data("suites") == shipped


def test_an_installation_without_its_data_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "__file__", str(tmp_path / "testbed/folders.py"))

    with pytest.raises(TestbedError, match="damaged: suites"):
        folders.data("suites")


@pytest.mark.parametrize(
    ("variable", "folder"), [("DRA_TESTBED_CACHE", folders.cache), ("DRA_TESTBED_STATE", folders.state)]
)
def test_a_variable_moves_the_folder_and_it_is_made_for_its_owner_alone(
    variable: str, folder: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "a/b"))
    assert callable(folder)

    assert folder() == tmp_path / "a/b"
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_an_error_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "file/state"))

    with pytest.raises(TestbedError, match="cannot make") as failed:
        folders.state()
    assert "DRA_TESTBED_STATE" in failed.value.hint


def test_a_path_is_its_owners_and_of_what_is_not_there_the_folder_above_counts(tmp_path: Path) -> None:
    assert folders.owner_of(Path("/proc/1/comm")) == folders.owner_of(Path("/nowhere/at/all")) == "root"
    assert str(tmp_path.stat().st_uid) in folders.owner_of(tmp_path) or tmp_path.owner() == folders.owner_of(tmp_path)
