from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.images.node.libraries import Libraries


def test_only_libraries_of_the_root_are_returned(debian: Path) -> None:
    needed = Libraries(debian).needed_by([debian / "usr/sbin/nft"])

    assert needed == {debian / "usr/lib/x-linux-gnu/libc.so.6"}


@pytest.mark.parametrize(("content", "suffices"), [("as old as the root", True), ("newer than the root", False)])
def test_a_foreign_program_is_checked_with_the_libraries_of_the_root(
    debian: Path, tmp_path: Path, content: str, suffices: bool
) -> None:
    (tmp_path / "runc").write_text(content)

    assert Libraries(debian).satisfy(tmp_path / "runc") == suffices


def test_a_static_program_needs_no_library(tmp_path: Path, elf: Callable[..., bytes]) -> None:
    (tmp_path / "runc").write_bytes(elf())

    assert Libraries(tmp_path / "no-root-at-all").satisfy(tmp_path / "runc")


def test_a_root_without_a_loader_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="no dynamic loader found in"):
        Libraries(tmp_path).loader()
