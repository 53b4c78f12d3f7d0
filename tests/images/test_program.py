from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.images.archives import names_in
from testbed.images.program import program
from testbed.progress import Silent

NAME = "localhost/a-driver:1"
Elf = Callable[..., bytes]
Read = Callable[[Path], Any]


@pytest.fixture
def driver(tmp_path: Path, elf: Elf) -> Path:
    file = tmp_path / "a-driver"
    file.write_bytes(elf())
    return file


@pytest.fixture
def folder(tmp_path: Path, elf: Elf) -> Path:
    (tmp_path / "root/app").mkdir(parents=True)
    (tmp_path / "root/app/driver").write_bytes(elf(needs_loader=True))
    (tmp_path / "root/app/driver").chmod(0o755)
    (tmp_path / "root/app/settings").write_text("a: 1")
    (tmp_path / "root/usr/lib64").mkdir(parents=True)
    (tmp_path / "root/usr/lib64/ld-linux.so.2").write_bytes(elf())
    (tmp_path / "root/lib64").symlink_to("usr/lib64")
    return tmp_path / "root"


def test_the_image_contains_the_program_as_its_entry_point(
    driver: Path, progress: Silent, read_archive: Read, tmp_path: Path
) -> None:
    image = program(NAME, driver, progress)
    parts = read_archive(image.archive)

    assert image.reference == NAME
    assert image.digest == parts.json("index.json")["manifests"][0]["digest"]
    assert parts.config["config"]["Entrypoint"] == ["/usr/bin/a-driver"]
    layer = parts.layer(0, tmp_path)
    assert (layer["usr/bin/a-driver"].size, layer["usr/bin/a-driver"].mode) == (driver.stat().st_size, 0o755)
    assert layer["tmp"].mode == 0o1777


def test_a_program_may_be_elsewhere_and_have_no_entry_point(
    driver: Path, progress: Silent, read_archive: Read, tmp_path: Path
) -> None:
    parts = read_archive(program(NAME, driver, progress, at="/dranet", entrypoint=[]).archive)

    assert "Entrypoint" not in parts.config["config"]
    assert set(parts.layer(0, tmp_path)) == {"dranet", "tmp"}


def test_the_image_of_a_folder_contains_its_content_with_the_requested_entry_point(
    folder: Path, progress: Silent, read_archive: Read, tmp_path: Path
) -> None:
    parts = read_archive(program(NAME, folder, progress, entrypoint=["/app/driver", "-v"]).archive)

    assert parts.config["config"]["Entrypoint"] == ["/app/driver", "-v"]
    layer = parts.layer(0, tmp_path)
    assert {"app/driver": 0o755, "app/settings": 0o644}.items() <= {
        name: each.mode for name, each in layer.items()
    }.items()


def test_a_folder_without_the_loader_of_its_entry_point_is_refused(folder: Path, progress: Silent) -> None:
    (folder / "lib64").unlink()

    with pytest.raises(UsageError, match=r"it needs the loader /lib64/ld-linux\.so\.2, which .*/root does not contain"):
        program(NAME, folder, progress, entrypoint=["/app/driver"])
    program(NAME, folder, progress)  # a manifest gives the command


def test_an_image_of_the_same_program_is_built_once(driver: Path, progress: Silent) -> None:
    first = program(NAME, driver, progress)
    driver.touch()

    assert program(NAME, driver, progress) == first


def test_another_program_name_or_entry_point_gives_another_image(driver: Path, progress: Silent, elf: Elf) -> None:
    first = program(NAME, driver, progress)
    renamed = program("localhost/a-driver:2", driver, progress)
    moved = program(NAME, driver, progress, at="/a-driver")
    driver.write_bytes(elf() + b"more")

    assert len({first.digest, moved.digest, program(NAME, driver, progress).digest}) == 3
    assert renamed.archive != first.archive


def test_a_name_without_registry_is_completed_as_the_kubelet_does(driver: Path, progress: Silent) -> None:
    image = program("a-driver", driver, progress)

    assert image.reference == "docker.io/library/a-driver:latest"
    assert names_in(image.archive) == (image.reference,)


def test_a_dynamically_linked_program_is_refused_with_the_loader_that_it_needs(
    driver: Path, progress: Silent, elf: Elf
) -> None:
    driver.write_bytes(elf(needs_loader=True))

    with pytest.raises(UsageError) as refused:
        program(NAME, driver, progress)

    assert refused.value.what == (
        f"{driver} is dynamically linked: it needs the loader /lib64/ld-linux.so.2, which its image would not contain"
    )
    assert "CGO_ENABLED=0" in refused.value.hint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"entrypoint": ["/usr/bin/other"]}, "the entry point /usr/bin/other is not in the image"),
        ({"at": "bin/driver"}, "not an absolute path"),
        ({"at": "/../driver"}, "not an absolute path"),
    ],
)
def test_wrong_paths_are_refused(driver: Path, progress: Silent, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        program(NAME, driver, progress, **settings)


def test_a_script_a_foreign_program_and_a_wrong_name_are_refused(driver: Path, progress: Silent, elf: Elf) -> None:
    with pytest.raises(UsageError, match=re.escape("'Acme Driver' is not a valid name")):
        program("Acme Driver", driver, progress)
    driver.write_bytes(elf(machine=40))
    with pytest.raises(UsageError, match="another architecture"):
        program(NAME, driver, progress)
    driver.write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match="no ELF program"):
        program(NAME, driver, progress)
