"""The paths of data and state, in a checkout and in a wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest

from testbed import folders
from testbed.errors import TestbedError
from testbed.folders import Data


@pytest.mark.parametrize("name", get_args(Data))
def test_data_is_found_in_a_checkout(name: Data) -> None:
    assert folders.data(name).exists()


def test_data_is_found_in_a_wheel_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "testbed/_data/suites"
    shipped.mkdir(parents=True)
    monkeypatch.setattr(folders, "__file__", str(tmp_path / "testbed/folders.py"))

    assert folders.data("suites") == shipped


def test_an_installation_without_its_data_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "__file__", str(tmp_path / "testbed/folders.py"))

    with pytest.raises(TestbedError, match="damaged: suites"):
        folders.data("suites")


@pytest.mark.parametrize(
    ("variable", "folder"), [("DRA_TESTBED_CACHE", folders.cache), ("DRA_TESTBED_STATE", folders.state)]
)
def test_a_variable_overrides_the_folder_and_only_its_owner_can_read_it(
    variable: str, folder: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "a/b"))
    assert callable(folder)

    assert folder() == tmp_path / "a/b"
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_the_error_for_a_folder_that_cannot_be_created_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "file/state"))

    with pytest.raises(TestbedError, match="cannot create") as failed:
        folders.state()
    assert "DRA_TESTBED_STATE" in failed.value.hint


def test_the_owner_of_a_missing_path_is_that_of_the_folder_above(tmp_path: Path) -> None:
    assert folders.owner_of(Path("/proc/1/comm")) == folders.owner_of(Path("/nowhere/at/all")) == "root"
    assert str(tmp_path.stat().st_uid) in folders.owner_of(tmp_path) or tmp_path.owner() == folders.owner_of(tmp_path)


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(TestbedError, match=f"other users can write the cache {tmp_path}/cache") as refused:
        folders.cache()
    assert f"chmod go-w {tmp_path}/cache" in refused.value.hint
    (tmp_path / "cache").chmod(0o755)
    assert folders.cache() == tmp_path / "cache"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path))
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(TestbedError, match="belongs to user 12345, who could replace the programs"):
        folders.cache()
    monkeypatch.setenv("SUDO_UID", "12345")
    assert folders.cache() == tmp_path
