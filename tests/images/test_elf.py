from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from testbed.images import elf as headers


def test_a_program_without_a_loader_is_static(tmp_path: Path, elf: Callable[..., bytes]) -> None:
    (tmp_path / "program").write_bytes(elf())

    assert headers.is_static(tmp_path / "program")


def test_dynamic_foreign_and_truncated_programs_and_scripts_are_not_static(
    tmp_path: Path, elf: Callable[..., bytes]
) -> None:
    for content in (elf(needs_loader=True), elf(machine=40), b"#!/bin/sh\nexit 0\n" * 10, elf()[:70], b""):
        (tmp_path / "program").write_bytes(content)

        assert not headers.is_static(tmp_path / "program")


def test_the_loader_of_a_dynamic_program_is_read(tmp_path: Path, elf: Callable[..., bytes]) -> None:
    (tmp_path / "program").write_bytes(elf(needs_loader=True))

    assert headers.read(tmp_path / "program") == headers.Program(runs_here=True, loader="/lib64/ld-linux.so.2")


def test_the_loader_of_a_program_of_this_host_exists() -> None:
    found = headers.read(Path("/bin/sh").resolve())

    assert found
    assert Path(found.loader).exists()
