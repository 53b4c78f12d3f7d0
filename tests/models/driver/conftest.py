"""The folder of a driver file."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/one.yaml").write_text("")
    (tmp_path / "image.tar").write_text("")
    return tmp_path
