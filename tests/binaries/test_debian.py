from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.binaries import debian
from testbed.errors import TestbedError

APT = """#!/bin/sh
echo "$*" >> "$FAKE_APT/calls"
case "$1" in
update) touch "$FAKE_APT/lists"; exit 0;;
esac
if [ ! -e "$FAKE_APT/lists" ]; then echo "E: Unable to locate package $4" >&2; exit 100; fi
shift 3
for name in "$@"; do
    case "$name" in
    virtual-thing) ;;
    broken-thing) echo "E: Hash Sum mismatch" >&2; exit 100;;
    *) echo "$name" > "${name}_1%3a2.3-4_amd64.deb";;
    esac
done
"""
DPKG = """#!/bin/sh
case "$1" in
-x) mkdir -p "$3/usr/bin"; cp "$2" "$3/usr/bin/$(cat "$2")";;
-f) echo "1:2.3-4";;
esac
"""
DEPENDS = """\
tool
  PreDepends: libc
 |Depends: first-choice
  Depends: second-choice
  Depends: <virtual>
    provider-a
    provider-b
 |Depends: <nobody>
  Depends: real-choice
first-choice
  Depends: libc
second-choice
  Depends: unwanted
provider-a
provider-b
  Depends: unwanted
real-choice
unwanted
<nobody>
<virtual>
libc
  Depends: tool
"""


@pytest.fixture
def apt(tmp_path: Path, on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a fake apt-get with package lists, which records its calls there."""
    folder = tmp_path / "apt"
    folder.mkdir()
    (folder / "lists").touch()
    monkeypatch.setenv("FAKE_APT", str(folder))
    on_path("apt-get", APT)
    on_path("dpkg-deb", DPKG)
    return folder


def calls(apt: Path) -> list[str]:
    return [line.split()[0] for line in (apt / "calls").read_text().splitlines()]


def test_a_package_is_unpacked_without_other_files(apt: Path, tmp_path: Path) -> None:
    into = debian.fetch_package("busybox", tmp_path / "into")

    assert sorted(path.name for path in into.rglob("*")) == ["bin", "busybox", "usr"]


def test_several_packages_are_fetched_by_one_call(apt: Path, tmp_path: Path) -> None:
    versions = debian.fetch_packages(["one", "two", "one"], tmp_path / "into")

    assert versions == {"one": "1:2.3-4", "two": "1:2.3-4"}
    assert calls(apt) == ["download"]


def test_a_package_of_another_architecture_is_found_by_its_name(apt: Path, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "one_1_arm64.deb").touch()

    assert debian.download_packages(["one:arm64"], tmp_path / "into")["one:arm64"].name.startswith("one_")


def test_root_updates_empty_package_lists_once(apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (apt / "lists").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    debian.fetch_package("busybox", tmp_path / "into")

    assert calls(apt) == ["download", "update", "download"]


def test_other_users_get_a_hint_to_update_empty_package_lists(
    apt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (apt / "lists").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(TestbedError, match=r"(?s)Unable to locate package.*sudo apt-get update"):
        debian.fetch_package("busybox", tmp_path / "into")

    assert calls(apt) == ["download"]


def test_an_error_of_apt_is_reported(apt: Path, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="apt-get download failed: E: Hash Sum mismatch"):
        debian.fetch_package("broken-thing", tmp_path / "into")


def test_a_package_without_a_file_is_an_error(apt: Path, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="downloaded no file of virtual-thing"):
        debian.fetch_packages(["one", "virtual-thing"], tmp_path / "into")


def test_a_host_without_apt_gets_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(TestbedError, match=r"(?s)apt-get was not found on this host.*--binaries-from FOLDER"):
        debian.fetch_package("runc", tmp_path / "into")


def test_dependencies_include_the_first_existing_alternative_and_provider(
    on_path: Callable[[str, str], Path],
) -> None:
    on_path("apt-cache", f"#!/bin/sh\ncat <<'END'\n{DEPENDS}END\n")

    assert debian.with_dependencies(["tool"]) == ["first-choice", "libc", "provider-a", "real-choice", "tool"]
