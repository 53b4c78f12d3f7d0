from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from testbed.errors import TestbedError
from testbed.images.store import Store, key_of
from testbed.progress import Step


class Builder:
    """A build function that writes a file and counts its calls."""

    def __init__(self, content: str = "content") -> None:
        self.content, self.count = content, 0

    def __call__(self, file: Path, scratch: Path) -> dict[str, Any]:
        self.count += 1
        (scratch / "work").write_text("unfinished")
        file.write_text(self.content)
        return {"digest": "sha256:1"}


@pytest.fixture
def store(cache: Path) -> Store:
    return Store(cache)


def test_an_entry_is_built_once_and_found_with_its_facts(store: Store) -> None:
    build = Builder()

    made = store.get_or_build("thing", "k", Step("t"), build)
    again = store.get_or_build("thing", "k", Step("t"), build)

    assert made == again == store.find("thing", "k")
    assert (build.count, made.file.read_text(), made.facts, made.size) == (1, "content", {"digest": "sha256:1"}, 7)


def test_another_key_gives_another_entry(store: Store) -> None:
    store.get_or_build("thing", key_of("one"), Step("t"), Builder("1"))

    assert store.find("thing", key_of("two")) is None
    assert store.get_or_build("thing", key_of("two"), Step("t"), Builder("2")).file.read_text() == "2"


def _truncate_the_file(place: Path) -> None:
    (place / "content.tar").write_text("cont")


def _flip_a_byte(place: Path) -> None:
    (place / "content.tar").write_text("c0ntent")
    os.utime(place / "content.tar", (1, 1))


def _corrupt_the_facts(place: Path) -> None:
    (place / "entry.json").write_text('{"sha256": ')


def _delete_the_file(place: Path) -> None:
    (place / "content.tar").unlink()


@pytest.mark.parametrize("damage", [_truncate_the_file, _flip_a_byte, _corrupt_the_facts, _delete_the_file])
def test_a_damaged_entry_is_not_found_and_rebuilt(store: Store, damage: Callable[[Path], None]) -> None:
    build = Builder()
    place = store.get_or_build("thing", "k", Step("t"), build).file.parent

    damage(place)

    assert store.find("thing", "k") is None
    assert store.get_or_build("thing", "k", Step("t"), build).file.read_text() == "content"
    assert build.count == 2


def test_a_copied_cache_is_verified_once_and_used(store: Store) -> None:
    entry = store.get_or_build("thing", "k", Step("t"), Builder())
    before = entry.file.stat().st_mtime_ns
    os.utime(entry.file, (1, 1))

    assert store.find("thing", "k") == entry
    assert entry.file.stat().st_mtime_ns == before


def test_concurrent_callers_share_one_build(store: Store) -> None:
    build = Builder()
    together = threading.Barrier(4)

    def make(_: int) -> str:
        together.wait()
        return store.get_or_build("thing", "k", Step("t"), build).file.read_text()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == ["content"] * 4
    assert build.count == 1


def test_a_wait_for_another_process_is_shown_in_the_step(store: Store, cache: Path) -> None:
    noted = threading.Event()

    class Listening(Step):
        def note(self, doing: str) -> None:
            super().note(doing)
            noted.set()

    cache.mkdir(parents=True)
    lock = FileLock(cache / "thing.lock", thread_local=False)
    lock.acquire()
    step = Listening("t")
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(store.get_or_build, "thing", "k", step, Builder())
        assert noted.wait(10)
        assert step.doing == "waiting for another process that builds thing"
        lock.release()
        assert result.result(10).size == 7


def test_a_build_that_fails_leaves_nothing(store: Store, cache: Path) -> None:
    def fail(file: Path, scratch: Path) -> dict[str, Any]:
        file.write_text("half")
        raise TestbedError("broken")

    with pytest.raises(TestbedError, match="broken"):
        store.get_or_build("thing", "k", Step("t"), fail)

    assert [entry.name for entry in cache.iterdir()] == ["thing.lock"]


def test_the_next_build_removes_the_unfinished_entry_of_a_killed_one(store: Store, cache: Path) -> None:
    (cache / "thing.part/made").mkdir(parents=True)
    (cache / "thing.part/made/content.tar").write_text("half")

    assert store.get_or_build("thing", "k", Step("t"), Builder()).file.read_text() == "content"
    assert not (cache / "thing.part").exists()


def test_the_error_for_a_full_disk_has_a_hint(store: Store) -> None:
    def full(file: Path, scratch: Path) -> dict[str, Any]:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    with pytest.raises(TestbedError, match=r"content\.tar: No space left on device\n  try: free disk space"):
        store.get_or_build("thing", "k", Step("t"), full)


def test_old_entries_are_deleted_except_for_the_newest_ones(store: Store) -> None:
    def aged(key: str, hours: float) -> None:
        place = store.get_or_build("thing", key, Step("t"), Builder()).file.parent
        then = time.time() - hours * 3600
        os.utime(place, (then, then))

    other = store.get_or_build("other", "k", Step("t"), Builder()).file
    for number in range(6):
        aged(f"old{number}", 48 - number)
    store.get_or_build("thing", "new", Step("t"), Builder())

    assert [number for number in range(6) if store.find("thing", f"old{number}")] == [3, 4, 5]
    assert store.find("thing", "new")
    assert other.exists()


def test_entries_that_were_used_within_the_last_hour_are_kept(store: Store) -> None:
    for number in range(8):
        store.get_or_build("thing", f"k{number}", Step("t"), Builder())

    assert all(store.find("thing", f"k{number}") for number in range(8))
