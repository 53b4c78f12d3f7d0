from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.images.program import program
from testbed.progress import Silent

NAME = "localhost/a-driver:1"


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    file = tmp_path / "a-driver"
    file.write_bytes(b"code")
    return file


def test_the_image_contains_the_program_as_its_entry_point(
    driver: Path, progress: Silent, read_archive: Callable[[Path], Any], tmp_path: Path
) -> None:
    image = program(NAME, driver, progress)
    parts = read_archive(image.archive)

    assert image.reference == NAME
    assert image.digest == parts.json("index.json")["manifests"][0]["digest"]
    assert parts.config["config"]["Entrypoint"] == ["/usr/bin/a-driver"]
    layer = parts.layer(0, tmp_path)
    assert (layer["usr/bin/a-driver"].size, layer["usr/bin/a-driver"].mode) == (4, 0o755)
    assert layer["tmp"].mode == 0o1777


def test_an_image_of_the_same_program_is_built_once(driver: Path, progress: Silent) -> None:
    first = program(NAME, driver, progress)
    driver.touch()

    assert program(NAME, driver, progress) == first


def test_another_program_or_another_name_gives_another_image(driver: Path, progress: Silent) -> None:
    first = program(NAME, driver, progress)
    renamed = program("localhost/a-driver:2", driver, progress)
    driver.write_bytes(b"other code")

    assert len({first.digest, program(NAME, driver, progress).digest}) == 2
    assert renamed.archive != first.archive
