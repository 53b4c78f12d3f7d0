"""Processes in a real cgroup of version 2, and a folder in place of one of version 1."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import process
from testbed.process import Completed
from testbed.providers.disk_guard import deny_disks

ROOTS = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
LOOP_DEVICE = (7, 0)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """Make a cgroup of version 2 with a child, as a node has one for each container."""
    root = next((each for each in ROOTS if (each / "cgroup.controllers").exists()), None)
    if os.geteuid() != 0 or root is None:
        pytest.skip("needs root and cgroup v2")
    made = root / f"dra-testbed-unit-test-{os.getpid()}"
    try:
        (made / "container").mkdir(parents=True)
    except OSError:
        pytest.skip("no cgroup can be made here")
    yield made
    (made / "container").rmdir()
    made.rmdir()


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    try:
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(*LOOP_DEVICE))
        path.open("rb").close()
    except OSError:
        pytest.skip("no block device can be opened here")
    return path


def within(cgroup: Path, command: str) -> Completed:
    return process.run(["sh", "-c", f"echo $$ >{cgroup}/container/cgroup.procs && {command}"], check=False)


def test_a_process_in_the_cgroup_cannot_open_a_disk_that_it_created(cgroup: Path, disk: Path) -> None:
    assert within(cgroup, f"head -c 0 {disk}").ok
    if not deny_disks(cgroup):
        pytest.skip("this kernel refuses BPF programs")

    refused = within(cgroup, f"rm {disk} && mknod {disk} b 7 0 && head -c 0 {disk}")

    assert not refused.ok
    assert "Operation not permitted" in refused.stderr
    assert disk.is_block_device()


def test_other_devices_stay_usable(cgroup: Path) -> None:
    deny_disks(cgroup)

    assert within(cgroup, "head -c 1 /dev/zero >/dev/null").ok


def test_the_device_cgroup_of_version_1_is_used_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "devices.deny").touch()

    assert deny_disks(tmp_path)
    assert (tmp_path / "devices.deny").read_text() == "b *:* rw"


def test_other_hierarchies_of_version_1_stay_as_they_are(tmp_path: Path) -> None:
    assert not deny_disks(tmp_path)
    assert not list(tmp_path.iterdir())
