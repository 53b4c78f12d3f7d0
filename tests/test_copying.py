from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.copying import copy_file, copy_tree


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "0.log").write_text("of the host\n")
    return folder / "0.log"


def _copied(into: Path) -> dict[str, str]:
    return {str(each.relative_to(into)): each.read_text() for each in into.rglob("*") if each.is_file()}


def test_regular_files_are_copied(tmp_path: Path) -> None:
    (tmp_path / "disk/var/log/pods/a").mkdir(parents=True)
    (tmp_path / "disk/var/log/pods/a/0.log").write_text("hello\n")
    copy_tree(tmp_path / "disk", "var/log/pods", tmp_path / "into")
    assert _copied(tmp_path / "into") == {"a/0.log": "hello\n"}


def test_links_to_files_and_folders_are_not_followed(tmp_path: Path, secret: Path) -> None:
    pods = tmp_path / "disk/var/log/pods"
    pods.mkdir(parents=True)
    (pods / "0.log").symlink_to(secret)
    (pods / "folder").symlink_to(secret.parent)
    os.mkfifo(pods / "pipe.log")
    copy_tree(tmp_path / "disk", "var/log/pods", tmp_path / "into")
    assert _copied(tmp_path / "into") == {}
    assert not any(each.is_symlink() for each in (tmp_path / "into").rglob("*"))


@pytest.mark.parametrize("link", ["var", "var/log", "var/log/pods"])
def test_a_link_on_the_way_to_the_folder_is_not_followed(tmp_path: Path, secret: Path, link: str) -> None:
    (secret.parent / "log/pods").mkdir(parents=True)
    (secret.parent / "log/pods/0.log").write_text("of the host\n")
    (secret.parent / "pods").mkdir()
    (secret.parent / "pods/0.log").write_text("of the host\n")
    path = tmp_path / "disk" / link
    path.parent.mkdir(parents=True)
    path.symlink_to(secret.parent)
    copy_tree(tmp_path / "disk", "var/log/pods", tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_a_link_at_the_target_is_replaced(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "boot.log").write_text("booted\n")
    (tmp_path / "copy.log").symlink_to(secret)
    assert copy_file(tmp_path / "boot.log", tmp_path / "copy.log")
    assert secret.read_text() == "of the host\n"
    assert (tmp_path / "copy.log").read_text() == "booted\n"


@pytest.mark.parametrize("kind", ["link", "nothing"])
def test_only_a_regular_file_is_copied(tmp_path: Path, secret: Path, kind: str) -> None:
    if kind == "link":
        (tmp_path / "kind.log").symlink_to(secret)
    assert not copy_file(tmp_path / "kind.log", tmp_path / "copy.log")
    assert not (tmp_path / "copy.log").exists()
