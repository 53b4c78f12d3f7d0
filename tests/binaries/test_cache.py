from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import folders
from testbed.binaries import Program
from testbed.binaries.cache import BinaryCache, build_identity
from testbed.process import ProcessId

CONTENT = b"#!/bin/sh\necho kubelet\n"


@pytest.fixture
def kubelet(program: Callable[[str], Program]) -> Program:
    return program("kubelet")


@pytest.fixture
def cached(store: BinaryCache, kubelet: Program) -> Path:
    with store.scratch() as scratch:
        (scratch / "file").write_bytes(CONTENT)
        return store.add(kubelet, "build", scratch / "file")


def test_an_added_program_is_found_and_executable(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    assert store.find(kubelet) == (cached, "")
    assert cached.read_bytes() == CONTENT
    assert os.access(cached, os.X_OK)


def test_a_program_that_was_never_added_is_not_damaged(store: BinaryCache, kubelet: Program) -> None:
    assert store.find(kubelet) == (None, "")


def test_only_allowed_origins_are_used(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    assert store.find(kubelet, ["download", "system"]) == (None, "")


def test_a_truncated_file_is_damaged(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    os.truncate(cached, 5)

    path, damage = store.find(kubelet)

    assert path is None
    assert f"has 5 bytes instead of {len(CONTENT)}" in damage


def test_a_file_of_zeros_is_damaged(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    cached.write_bytes(bytes(len(CONTENT)))

    path, damage = store.find(kubelet)

    assert path is None
    assert "has another checksum" in damage


def test_a_change_with_the_old_time_is_found_only_by_verifying(
    store: BinaryCache, kubelet: Program, cached: Path
) -> None:
    before = cached.stat()
    cached.write_bytes(bytes(len(CONTENT)))
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert store.find(kubelet) == (cached, "")
    assert "has another checksum" in store.find(kubelet, verify=True)[1]


def test_a_touched_file_is_not_damaged(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    before = cached.stat().st_mtime_ns
    os.utime(cached, ns=(1, 1))

    assert store.find(kubelet) == (cached, "")
    assert cached.stat().st_mtime_ns == before


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"program": "kubelet"}'])
def test_an_entry_without_a_readable_manifest_is_damaged(
    manifest: str, store: BinaryCache, kubelet: Program, cached: Path
) -> None:
    (cached.parent / "entry.json").write_text(manifest)

    assert "has no manifest" in store.find(kubelet)[1]


def test_an_entry_without_its_file_is_damaged(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    cached.unlink()

    assert "No such file" in store.find(kubelet)[1]


def test_a_new_file_replaces_a_damaged_one(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    os.truncate(cached, 0)
    with store.scratch() as scratch:
        (scratch / "new").write_bytes(b"new")
        store.add(kubelet, "build", scratch / "new")

    assert store.find(kubelet) == (cached, "")
    assert cached.read_bytes() == b"new"


def test_sweeping_removes_temporary_folders_of_dead_processes_only(store: BinaryCache) -> None:
    dead = store.root / ".scratch" / f"{os.getpid()}-1-0"  # our process ID, but another start time
    dead.mkdir(parents=True)
    (dead / "half").write_bytes(b"x")

    with store.scratch() as mine:
        store.sweep()

        assert mine.exists()
        assert not dead.exists()
    assert not mine.exists()


def test_scratch_is_named_after_this_process(store: BinaryCache) -> None:
    this = ProcessId.of(os.getpid())
    assert this is not None

    with store.scratch() as mine:
        assert mine.name.startswith(f"{this.pid}-{this.started}-")


def test_other_sources_change_the_identity_of_a_build(
    store: BinaryCache, kubelet: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build_identity(kubelet.upstream)
    shutil.copytree(folders.data("versions"), tmp_path / "versions")
    monkeypatch.setattr(folders, "data", lambda name: tmp_path / name)

    assert build_identity(kubelet.upstream) == before
    with (tmp_path / "versions/go/kubernetes-1.37/go.sum").open("a") as sums:
        sums.write("example.com v1 h1:x=\n")
    assert build_identity(kubelet.upstream) != before
