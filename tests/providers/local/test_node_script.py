"""The root file system that node.sh creates, in a real machine: only root can boot one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import process
from testbed.providers.local import namespaces
from testbed.providers.local.host import has_overlay, on_overlay
from testbed.providers.local.namespaces import Machine

PROGRAM = "/usr/local/bin/program"
SCRIPT = Path(namespaces.__file__).with_name("node.sh")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount file systems")


def can_unshare() -> bool:
    return process.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], check=False).ok


@pytest.fixture(params=["overlay", "copy"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    if not can_unshare():
        pytest.skip("this root cannot create namespaces")
    if request.param == "overlay" and (on_overlay(tmp_path) or not has_overlay(os.uname().release)):
        pytest.skip("no overlay can be mounted here")
    folder = tmp_path / "node-1"
    (folder / "files").mkdir(parents=True)
    (folder / "disk.paths").write_text("")
    (folder / "programs").write_text(f"{tmp_path / 'program'} {PROGRAM}\n")
    (tmp_path / "program").write_text("the cached program\n")
    machine = boot(folder, request.param)
    yield machine
    process.kill(machine.init)


def boot(folder: Path, how: str) -> Machine:
    return namespaces.boot(folder.parent, folder, ["sh", str(SCRIPT), str(folder), "node-1", how], own_root=True)


def test_a_node_has_character_devices_but_no_disk_of_the_host(node: Machine) -> None:
    assert node.run("sh", "-c", "test -c /dev/null && find /dev -type b").stdout == ""
    assert not node.run("sh", "-c", "ls -d /dev/mem /dev/disk /dev/block /dev/loop-control", check=False).stdout


def test_each_boot_has_its_own_id_and_no_cdi_files(node: Machine, request: pytest.FixtureRequest) -> None:
    read = ("cat", "/proc/sys/kernel/random/boot_id")
    first = node.run(*read).stdout
    node.run("sh", "-c", "mkdir /var/run/cdi && touch /var/run/cdi/devices.json")
    process.kill(node.init)
    again = boot(node.folder, request.node.callspec.params["node"])
    second, left = again.run(*read).stdout, again.run("ls", "-A", "/run").stdout
    process.kill(again.init)

    assert len({first, second, Path("/proc/sys/kernel/random/boot_id").read_text()}) == 3
    assert "cdi" not in left.split()


def test_the_boot_id_cannot_be_changed(node: Machine) -> None:
    written = node.run("sh", "-c", "echo mine >/proc/sys/kernel/random/boot_id", check=False)

    assert "Read-only file system" in written.stderr


def test_a_program_from_the_cache_is_read_only_on_a_node(node: Machine) -> None:
    written = node.run("sh", "-c", f"cat {PROGRAM}; echo mine >{PROGRAM} || mv /etc/hostname {PROGRAM}", check=False)

    assert (written.ok, written.stdout) == (False, "the cached program\n")
    assert "Read-only file system" in written.stderr
    assert (node.cluster / "program").read_text() == "the cached program\n"
