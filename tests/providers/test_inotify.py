"""The check of the kernel's limit on inotify instances."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

import pytest

from testbed.bringup import doctor
from testbed.providers import inotify
from testbed.providers.base import ClusterSpec
from testbed.providers.local import LocalProvider


class Libc:
    """A libc whose kernel has so many instances left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def inotify_init1(self, _: int) -> int:
        self.left -= 1
        return os.open(os.devnull, os.O_RDONLY) if self.left >= 0 else -1


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_instances_that_can_be_created_are_counted_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc(3))

    assert (inotify.available(3), inotify.available(4)) == (3, 3)
    assert open_files() == before


def test_no_more_instances_are_created_than_this_process_may_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc(4))

    assert inotify.available(100) == 100


def test_available_works_on_this_kernel() -> None:
    assert 0 <= inotify.available(1) <= 1


def test_a_local_testbed_without_enough_instances_is_refused_and_doctor_has_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inotify, "available", lambda _: 0)

    refused = [each for each in LocalProvider().preflight(ClusterSpec("1.37.1", nodes=2)) if "inotify" in each.what]
    assert [each.fatal for each in refused] == [True]
    assert any("sysctl fs.inotify.max_user_instances=512" in each.cure for each in doctor.examine("local"))
