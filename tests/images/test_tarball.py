from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from testbed.images import tarball


def _members(file: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(file) as tar:
        return tar.getmembers()


def test_order_times_and_modes_of_files_do_not_change_the_bytes(tmp_path: Path) -> None:
    for name, when, mode in (("one", 1, 0o600), ("two", 10**9, 0o664)):
        (tmp_path / name / "sub").mkdir(parents=True)
        for file in ("b", "a", "sub/c"):
            (tmp_path / name / file).write_text(file)
            (tmp_path / name / file).chmod(mode)
            os.utime(tmp_path / name / file, (when, when))

    tarball.write(tarball.tree(tmp_path / "one"), tmp_path / "one.tar")
    tarball.write(reversed(list(tarball.tree(tmp_path / "two"))), tmp_path / "two.tar")

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_members_are_sorted_and_belong_to_root_in_1970(tmp_path: Path) -> None:
    tarball.write(
        [tarball.file("a-b", b"1"), tarball.file("a/z", "2", 0o755), tarball.folder("tmp", 0o1777)], tmp_path / "x.tar"
    )

    members = _members(tmp_path / "x.tar")

    assert [(member.name, member.mode) for member in members] == [
        ("a", 0o755),
        ("a/z", 0o755),
        ("a-b", 0o644),
        ("tmp", 0o1777),
    ]
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in members} == {
        (0, 0, "", "", 0)
    }


def test_a_tree_keeps_symlinks_empty_folders_and_executable_bits(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "empty").mkdir(parents=True)
    (root / "run").write_text("#!")
    (root / "run").chmod(0o700)
    (root / "way").symlink_to("/absolute/and/dangling")
    os.mkfifo(root / "pipe")

    tarball.write(tarball.tree(root, "opt"), tmp_path / "x.tar")

    found = {member.name: member for member in _members(tmp_path / "x.tar")}
    assert sorted(found) == ["opt", "opt/empty", "opt/run", "opt/way"]
    assert found["opt/empty"].isdir()
    assert found["opt/run"].mode == 0o755
    assert found["opt/way"].linkname == "/absolute/and/dangling"


def test_a_long_path_is_kept(tmp_path: Path) -> None:
    path = "/".join(["folder" * 5] * 10)

    tarball.write([tarball.file(path, b"x")], tmp_path / "x.tar")

    assert _members(tmp_path / "x.tar")[-1].name == path


def test_two_different_members_with_the_same_path_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two different members of the archive have the path bin/sh"):
        tarball.write([tarball.link("bin/sh", "busybox"), tarball.file("bin/sh", b"")], tmp_path / "x.tar")
