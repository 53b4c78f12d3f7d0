from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.images import python_base
from testbed.progress import Step


def _layer(distribution: Any) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(python_base.layer(python_base.resolve(), Step("t")).file) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_only_required_packages_are_pinned(distribution: Any) -> None:
    packages = python_base.resolve()

    assert packages.pins == ("libc6=2.40-1", "libpython3.13-stdlib=3.13.5-2", "python3.13-minimal=3.13.5-2")
    assert packages.python == "3.13"


def test_the_resolution_is_stored_and_a_newer_package_changes_the_key(distribution: Any) -> None:
    first = python_base.resolve()
    distribution.versions["libc6"] = "2.40-2"

    assert python_base.last_resolved() == first
    assert python_base.resolve().key != first.key
    assert python_base.last_resolved() != first


def test_an_unreadable_stored_resolution_is_ignored(distribution: Any, cache: Path) -> None:
    assert python_base.last_resolved() is None
    python_base.resolve()
    (cache / "packages.json").write_text("[")

    assert python_base.last_resolved() is None


def test_a_python_that_is_too_old_is_an_error_with_a_hint(distribution: Any) -> None:
    distribution.versions = {"libc6": "2.35", "python3.10-minimal": "3.10.4"}

    with pytest.raises(TestbedError, match=r"Python 3\.10; the driver needs at least 3\.11\n  try: .*--with docker"):
        python_base.resolve()


def test_the_layer_contains_only_python_and_its_libraries(distribution: Any) -> None:
    files = {name for name, member in _layer(distribution).items() if member.isfile() and "__pycache__" not in name}

    assert files == {
        "etc/group", "etc/nsswitch.conf", "etc/passwd", "usr/bin/python3.13", "usr/lib/python3.13/lib-dynload/_ssl.x.so",
        "usr/lib/python3.13/os.py", "usr/lib/x-linux-gnu/ld-linux-x.so.2", "usr/lib/x-linux-gnu/libc.so.6",
    }  # fmt: skip


def test_the_layer_has_a_merged_usr_and_the_links_to_the_loader(distribution: Any) -> None:
    layer = _layer(distribution)

    assert {name: layer[name].linkname for name in ("bin", "lib", "lib64", "sbin")} == {
        "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"
    }  # fmt: skip
    assert layer["usr/lib64/ld-linux-x.so.2"].linkname == "/lib/x-linux-gnu/ld-linux-x.so.2"
    assert layer["usr/bin/python3"].linkname == "python3.13"
    assert layer["tmp"].mode == 0o1777


def test_the_standard_library_is_compiled(distribution: Any) -> None:
    assert any(name.startswith("usr/lib/python3.13/__pycache__/os.") for name in _layer(distribution))


def test_the_same_packages_are_fetched_once(distribution: Any) -> None:
    packages = python_base.resolve()

    assert python_base.layer(packages, Step("t")) == python_base.layer(packages, Step("t"))
    assert len(distribution.fetched) == 1
