"""The IDs of spec.known in a driver file are those of requirements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import folders
from testbed.errors import UsageError
from testbed.runs.known_failures import check_known_ids


def _driver_file(folder: Path, known: str) -> Path:
    drivers = folders.data("manifests") / "drivers"
    text = (drivers / "fake-gpu.yaml").read_text().replace(" ../", f" {drivers.parent}/")
    text = text.replace("[fake-nic.yaml]", f"[{drivers}/fake-nic.yaml]")
    path = folder / "driver.yaml"
    path.write_text(f"{text}  known:\n{known}")
    return path


def test_the_id_of_a_requirement_is_accepted(tmp_path: Path) -> None:
    check_known_ids(_driver_file(tmp_path, "  - {id: PREP-004, reason: a}\n"))


def test_an_unknown_id_is_refused_with_its_line_and_similar_ones(tmp_path: Path) -> None:
    path = _driver_file(tmp_path, "  - {id: PREP-004, reason: a}\n  - {id: PREP-044, reason: b}\n")
    line = len(path.read_text().splitlines())
    expected = f"{path}:{line}: spec.known[1].id: is 'PREP-044', but there is no such requirement; did you mean PREP-"
    with pytest.raises(UsageError, match=re.escape(expected)):
        check_known_ids(path)
