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


def test_what_was_added_is_found_and_can_be_run(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    assert store.look(kubelet) == (cached, "")
    assert cached.read_bytes() == CONTENT
    assert os.access(cached, os.X_OK)


def test_what_was_never_added_is_missing_without_a_complaint(store: BinaryCache, kubelet: Program) -> None:
    assert store.look(kubelet) == (None, "")


def test_only_the_origins_that_are_allowed_count(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    assert store.look(kubelet, ["download", "system"]) == (None, "")


def test_a_truncated_file_is_noticed(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    os.truncate(cached, 5)

    path, trouble = store.look(kubelet)

    assert path is None
    assert f"has 5 bytes instead of {len(CONTENT)}" in trouble


def test_a_file_full_of_zeros_is_noticed(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    cached.write_bytes(bytes(len(CONTENT)))

    path, trouble = store.look(kubelet)

    assert path is None
    assert "content changed" in trouble


def test_a_change_that_hides_its_time_is_noticed_by_a_thorough_look(
    store: BinaryCache, kubelet: Program, cached: Path
) -> None:
    before = cached.stat()
    cached.write_bytes(bytes(len(CONTENT)))
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert store.look(kubelet) == (cached, "")
    assert "content changed" in store.look(kubelet, thorough=True)[1]


def test_a_file_that_was_only_touched_is_still_good(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    before = cached.stat().st_mtime_ns
    os.utime(cached, ns=(1, 1))

    assert store.look(kubelet) == (cached, "")
    assert cached.stat().st_mtime_ns == before


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"program": "kubelet"}'])
def test_an_entry_without_a_readable_manifest_does_not_count(
    manifest: str, store: BinaryCache, kubelet: Program, cached: Path
) -> None:
    (cached.parent / "entry.json").write_text(manifest)

    assert "has no manifest" in store.look(kubelet)[1]


def test_an_entry_without_its_file_does_not_count(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    cached.unlink()

    assert "No such file" in store.look(kubelet)[1]


def test_a_new_file_takes_the_place_of_a_damaged_one(store: BinaryCache, kubelet: Program, cached: Path) -> None:
    os.truncate(cached, 0)
    with store.scratch() as scratch:
        (scratch / "new").write_bytes(b"new")
        store.add(kubelet, "build", scratch / "new")

    assert store.look(kubelet) == (cached, "")
    assert cached.read_bytes() == b"new"


def test_the_work_of_dead_processes_is_removed_and_that_of_the_living_stays(store: BinaryCache) -> None:
    dead = store.root / ".scratch" / f"{os.getpid()}-1-0"  # our number, but somebody who started long ago
    dead.mkdir(parents=True)
    (dead / "half").write_bytes(b"x")

    with store.scratch() as mine:
        store.sweep()

        assert mine.exists()
        assert not dead.exists()
    assert not mine.exists()


def test_scratch_is_named_after_this_process(store: BinaryCache) -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None

    with store.scratch() as mine:
        assert mine.name.startswith(f"{me.pid}-{me.started}-")


def test_other_sources_are_another_build(
    store: BinaryCache, kubelet: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build_identity(kubelet.upstream)
    shutil.copytree(folders.data("versions"), tmp_path / "versions")
    monkeypatch.setattr(folders, "data", lambda name: tmp_path / name)

    assert build_identity(kubelet.upstream) == before
    with (tmp_path / "versions/go/kubernetes-1.37/go.sum").open("a") as sums:
        sums.write("example.com v1 h1:x=\n")
    assert build_identity(kubelet.upstream) != before
