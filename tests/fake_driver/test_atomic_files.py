import errno
import os
from pathlib import Path

import pytest

from fake_driver.atomic_files import remove, write_atomically


def test_content_and_mode_are_as_requested_regardless_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "file", b"new", 0o644)
    finally:
        os.umask(before)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_full_disk_keeps_the_old_content_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "file", b"old", 0o600)

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "file", b"new", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".file.unfinished").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "file", b"new", 0o600)
    assert (tmp_path / "victim").read_text() == "mine"


def test_removing_a_file_twice_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove(tmp_path / "file")
    assert not remove(tmp_path / "file")
