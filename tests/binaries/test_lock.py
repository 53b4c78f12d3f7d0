from __future__ import annotations

import re

import pytest

from testbed import folders
from testbed.binaries import Lock, lock_for, minors, peers
from testbed.binaries.toolchain import _locked, parse_version, required_version
from testbed.errors import UsageError

MODULES = {
    "runc": "github.com/opencontainers/runc",
    "cni": "github.com/containernetworking/plugins",
    "etcd": "go.etcd.io/etcd/server/v3",
    "containerd": "github.com/containerd/containerd/v2",
    "kind": "sigs.k8s.io/kind",
    "crictl": "sigs.k8s.io/cri-tools",
    "coredns": "github.com/coredns/coredns",
    "kubernetes": "k8s.io/kubernetes",
    "dra-example-driver": "sigs.k8s.io/dra-example-driver",
    "dra-test-driver": "k8s.io/kubernetes",
}


def test_the_newest_minor_comes_first() -> None:
    assert minors() == ("1.37", "1.36", "1.35", "1.34")


@pytest.mark.parametrize("version", ["1.37", "1.37.1", "v1.37.1"])
def test_a_minor_and_its_locked_patch_are_the_same_lock(version: str) -> None:
    assert lock_for(version).kubernetes == "1.37.1"


@pytest.mark.parametrize("version", ["1.33", "1.38.0", "1", "latest", ""])
def test_an_unknown_minor_is_refused_with_those_that_are_locked(version: str) -> None:
    with pytest.raises(UsageError, match=r"1\.37, 1\.36, 1\.35, 1\.34"):
        lock_for(version)


def test_another_patch_is_refused_with_the_one_that_is_locked() -> None:
    with pytest.raises(UsageError, match=r"1\.36\.4 is"):
        lock_for("1.36.5")


def test_a_misspelt_program_is_answered_with_the_near_ones() -> None:
    with pytest.raises(UsageError, match="did you mean kubelet"):
        lock_for("1.37").program("kubelett")


@pytest.mark.parametrize("lock", [*map(lock_for, minors()), peers()], ids=lambda lock: lock.kubernetes)
def test_each_program_is_built_from_the_version_that_is_locked(lock: Lock) -> None:
    for program in lock.programs.values():
        module = MODULES[program.upstream.name]
        go_mod = (program.upstream.module_folder / "go.mod").read_text()

        assert f"require {module} v{program.version}\n" in go_mod
        assert program.package.startswith(module)
        assert f"{module} v{program.version} h1:" in (program.upstream.module_folder / "go.sum").read_text()


def test_the_peers_of_the_bench_are_no_part_of_any_testbed() -> None:
    assert set(peers().programs) == {"dra-example-kubeletplugin", "dra-test-driver"}
    assert not any(set(peers().programs) & set(lock_for(minor).programs) for minor in minors())


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_each_address_is_complete_and_its_checksum_lies_on_the_same_site(arch: str) -> None:
    for program in lock_for("1.37").programs.values():
        url = program.fill(program.upstream.download.url, arch)
        checksum = program.fill(program.upstream.download.checksum, arch, url)

        assert re.fullmatch(r"https://(dl\.k8s\.io|github\.com)/[\w./-]+", url)
        assert program.version in url
        assert checksum.split("/")[2] == url.split("/")[2]


def test_the_programs_of_kubernetes_say_their_version() -> None:
    kubelet = lock_for("1.35").program("kubelet")

    flags = [kubelet.fill(flag, "amd64") for flag in kubelet.upstream.build.ldflags]

    assert "-X k8s.io/component-base/version.gitVersion=v1.35.8" in flags
    assert "-X k8s.io/component-base/version.gitMinor=35" in flags


@pytest.mark.parametrize("minor", minors())
def test_each_minor_knows_its_gates(minor: str) -> None:
    gates = lock_for(minor).gates

    assert gates["DynamicResourceAllocation"].stage == "ga"
    assert gates["DynamicResourceAllocation"].default
    assert {gate.stage for gate in gates.values()} == {"alpha", "beta", "ga", "deprecated"}
    assert all(need in gates for gate in gates.values() for need in gate.needs)


def test_a_gate_says_whether_it_is_locked_and_what_it_needs() -> None:
    gates = lock_for("1.37").gates

    assert gates["DRAAdminAccess"].locked
    assert not gates["DRAConsumableCapacity"].locked
    assert gates["DRADeviceTaintRules"].needs == ["DRADeviceTaints"]
    assert lock_for("1.37").knowledge.unknown_to_scheduler == ["ControllerManagerReleaseLeaderElectionLockOnExit"]


@pytest.mark.parametrize("minor", minors())
def test_only_the_stable_resource_api_is_served_unasked(minor: str) -> None:
    versions = lock_for(minor).resource_versions

    assert [version for version, served in versions.items() if served] == ["v1"]
    assert {"v1beta1", "v1beta2", "v1alpha3"} < set(versions)


def test_the_toolchain_is_pinned_for_both_architectures() -> None:
    assert set(_locked().sha256) == {"amd64", "arm64"}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in _locked().sha256.values())


def test_the_locked_toolchain_builds_every_module() -> None:
    modules = (folders.data("versions") / "go").glob("*/go.mod")

    assert all(required_version(module.parent) <= parse_version(_locked().version) for module in modules)
