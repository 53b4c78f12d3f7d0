"""Cgroups of both versions, in a tree of ordinary folders instead of /sys/fs/cgroup."""

from pathlib import Path

import pytest

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.local import cgroups


@pytest.fixture(autouse=True)
def space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the PID namespace of the tests."""
    monkeypatch.setattr(process, "pid_namespace", lambda: "pid:[7]")


@pytest.fixture
def version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for controller in ("memory", "cpuset"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory hugetlb")
    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    return tmp_path


def test_on_version_1_the_cgroup_is_created_in_every_controller(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))

    assert (version_1 / "memory/dra-testbed/dev.140.7/node-1").is_dir()
    assert (version_1 / "cpuset/dra-testbed/dev.140.7/node-1").is_dir()


def test_on_version_1_the_pods_of_a_node_may_not_open_disks(version_1: Path) -> None:
    node = version_1 / "devices/dra-testbed/dev.140.7/node-1"
    node.mkdir(parents=True)
    for name in (version_1 / "devices/cgroup.procs", node / "devices.deny"):
        name.touch()

    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))

    assert (node / "devices.deny").read_text() == "b *:* rw"


def test_on_version_2_every_controller_of_the_host_is_enabled_for_the_nodes(version_2: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))

    assert (version_2 / "dra-testbed/dev.140.7/node-1").is_dir()
    assert (version_2 / "cgroup.subtree_control").read_text() == "+hugetlb +memory"


def test_on_version_2_disabled_controllers_are_recorded_and_disabled_again_with_the_last_testbed(
    version_2: Path,
) -> None:
    (version_2 / "cgroup.controllers").write_text("cpu memory")
    cgroups.make(cgroups.cgroup_of("dev", 140))
    (version_2 / "cgroup.subtree_control").write_text("cpu memory")  # as the kernel lists enabled controllers
    cgroups.make(cgroups.cgroup_of("dev", 141))

    cgroups.remove(cgroups.cgroup_of("dev", 140))
    assert (version_2 / "dra-testbed/lent:memory").is_dir()
    assert (version_2 / "cgroup.subtree_control").read_text() == "cpu memory"

    cgroups.remove(cgroups.cgroup_of("dev", 141))
    assert not (version_2 / "dra-testbed").exists()
    assert (version_2 / "cgroup.subtree_control").read_text() == "-memory"


def test_on_version_2_controllers_that_were_enabled_stay_enabled(version_2: Path) -> None:
    (version_2 / "cgroup.subtree_control").write_text("cpu memory hugetlb")

    cgroups.make(cgroups.cgroup_of("dev", 140))
    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert not (version_2 / "dra-testbed").exists()
    assert (version_2 / "cgroup.subtree_control").read_text() == "cpu memory hugetlb"


def test_the_record_of_controllers_is_not_taken_for_a_testbed(version_2: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140))

    assert cgroups.paths_of_testbeds() == {"/dra-testbed/dev.140.7"}


def test_children_and_the_common_parent_are_removed_and_removing_twice_is_allowed(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))
    (version_1 / "memory/dra-testbed/dev.140.7/node-1/kubepods/pod1").mkdir(parents=True)

    cgroups.remove(cgroups.cgroup_of("dev", 140))
    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert not (version_1 / "memory/dra-testbed").exists()


def test_removing_one_testbed_keeps_the_others(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140))
    cgroups.make(cgroups.cgroup_of("dev", 141))

    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert cgroups.paths_of_testbeds() == {"/dra-testbed/dev.141.7"}
    assert (version_1 / "memory/dra-testbed/dev.141.7").is_dir()


def test_the_error_of_a_refused_cgroup_has_a_hint(version_1: Path) -> None:
    (version_1 / "memory/dra-testbed").write_text("in the way")

    with pytest.raises(TestbedError, match="--privileged"):
        cgroups.make(cgroups.cgroup_of("dev", 140))


def test_cgroups_of_a_container_on_this_host_are_not_listed(version_1: Path) -> None:
    (version_1 / "memory/dra-testbed/other.140.8").mkdir(parents=True)

    assert cgroups.paths_of_testbeds() == set()
