"""The CDI files of a node are read as a driver names and fills them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.process import Completed
from testbed.vocabulary.cluster import cdi_files


class _ThisHost:
    def run(self, *argv: str, check: bool = True) -> Completed:
        return process.run(argv, check=check)


@pytest.mark.parametrize("name", ["gpu.json", "two\nlines.json", r"back\nslash.yaml", "-n.json", "a b.json"])
def test_no_name_hides_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(cdi_files, "FOLDERS", (str(tmp_path), str(tmp_path / "missing")))
    (tmp_path / name).write_text("{}")
    (tmp_path / "unfinished.tmp").write_text("{}")
    node: Any = _ThisHost()
    assert cdi_files.read_cdi_files(node) == {str(tmp_path / name): "{}"}


def test_of_a_huge_file_only_the_beginning_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi_files, "FOLDERS", (str(tmp_path),))
    with (tmp_path / "huge.json").open("w") as file:
        file.write("{")
        file.truncate(1 << 26)
    node: Any = _ThisHost()
    assert [len(text) for text in cdi_files.read_cdi_files(node).values()] == [1 << 24]
