"""Cgroups on both versions, in a tree of ordinary folders that stands for /sys/fs/cgroup."""

from pathlib import Path

import pytest

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.local import cgroups


@pytest.fixture(autouse=True)
def space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The PID namespace that the tests pretend to be in."""
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


def test_on_version_1_the_group_is_made_in_every_controller(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))

    assert (version_1 / "memory/dra-testbed/dev.140.7/node-1").is_dir()
    assert (version_1 / "cpuset/dra-testbed/dev.140.7/node-1").is_dir()


def test_on_version_2_every_controller_of_the_host_is_handed_down(version_2: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))

    assert (version_2 / "dra-testbed/dev.140.7/node-1").is_dir()
    assert (version_2 / "cgroup.subtree_control").read_text() == "+hugetlb +memory"


def test_on_version_2_what_the_host_had_off_is_written_down_and_off_again_with_the_last_testbed(
    version_2: Path,
) -> None:
    (version_2 / "cgroup.controllers").write_text("cpu memory")
    cgroups.make(cgroups.cgroup_of("dev", 140))
    (version_2 / "cgroup.subtree_control").write_text("cpu memory")  # as the kernel tells what is on
    cgroups.make(cgroups.cgroup_of("dev", 141))

    cgroups.remove(cgroups.cgroup_of("dev", 140))
    assert (version_2 / "dra-testbed/lent:memory").is_dir()
    assert (version_2 / "cgroup.subtree_control").read_text() == "cpu memory"

    cgroups.remove(cgroups.cgroup_of("dev", 141))
    assert not (version_2 / "dra-testbed").exists()
    assert (version_2 / "cgroup.subtree_control").read_text() == "-memory"


def test_on_version_2_what_was_on_already_stays_on(version_2: Path) -> None:
    (version_2 / "cgroup.subtree_control").write_text("cpu memory hugetlb")

    cgroups.make(cgroups.cgroup_of("dev", 140))
    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert not (version_2 / "dra-testbed").exists()
    assert (version_2 / "cgroup.subtree_control").read_text() == "cpu memory hugetlb"


def test_what_was_lent_is_no_testbed_of_ours(version_2: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140))

    assert cgroups.all_of_ours() == {"/dra-testbed/dev.140.7"}


def test_removing_takes_children_and_the_common_parent_and_twice_is_fine(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140, "node-1"))
    (version_1 / "memory/dra-testbed/dev.140.7/node-1/kubepods/pod1").mkdir(parents=True)

    cgroups.remove(cgroups.cgroup_of("dev", 140))
    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert not (version_1 / "memory/dra-testbed").exists()


def test_removing_one_testbed_leaves_the_others(version_1: Path) -> None:
    cgroups.make(cgroups.cgroup_of("dev", 140))
    cgroups.make(cgroups.cgroup_of("dev", 141))

    cgroups.remove(cgroups.cgroup_of("dev", 140))

    assert cgroups.all_of_ours() == {"/dra-testbed/dev.141.7"}
    assert (version_1 / "memory/dra-testbed/dev.141.7").is_dir()


def test_a_refusal_says_what_to_try(version_1: Path) -> None:
    (version_1 / "memory/dra-testbed").write_text("in the way")

    with pytest.raises(TestbedError, match="--privileged"):
        cgroups.make(cgroups.cgroup_of("dev", 140))


def test_the_groups_of_a_container_on_this_host_are_not_ours(version_1: Path) -> None:
    (version_1 / "memory/dra-testbed/other.140.8").mkdir(parents=True)

    assert cgroups.all_of_ours() == set()
