"""A fake container engine: a shell script that records its arguments and prints the answers of a test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

FakeEngine = Callable[..., Path]


@pytest.fixture
def fake_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Put a `docker` on PATH whose answers are the body of a shell `case`; return the file with its recorded arguments."""
    asked, folder = tmp_path / "asked", tmp_path / "bin"
    asked.write_text("")
    folder.mkdir()
    for tool in ("sh", "cat", "head", "sed"):  # and nothing else, because this host may have a real engine
        (folder / tool).symlink_to(str(shutil.which(tool)))

    def make(answers: str, program: str = "docker") -> Path:
        script = folder / program
        script.write_text(f'#!/bin/sh\necho "$*" >> {asked}\ncase "$*" in\n{answers}\nesac\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        return asked

    return make
