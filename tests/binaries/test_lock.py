from __future__ import annotations

import re

import pytest

from testbed import folders
from testbed.binaries import Lock, lock_for, minors, peers
from testbed.binaries.toolchain import _locked, parse_version, required_version
from testbed.errors import UsageError
from testbed.providers.local.provider import LocalProvider

MODULES = {
    "runc": "github.com/opencontainers/runc",
    "cni": "github.com/containernetworking/plugins",
    "etcd": "go.etcd.io/etcd/server/v3",
    "containerd": "github.com/containerd/containerd/v2",
    "kind": "sigs.k8s.io/kind",
    "crictl": "sigs.k8s.io/cri-tools",
    "coredns": "github.com/coredns/coredns",
    "helm": "helm.sh/helm/v3",
    "kubernetes": "k8s.io/kubernetes",
    "dra-example-driver": "sigs.k8s.io/dra-example-driver",
    "dranet": "sigs.k8s.io/dranet",
    "dra-driver-cpu": "github.com/kubernetes-sigs/dra-driver-cpu",
    "dra-test-driver": "k8s.io/kubernetes",
    "runc-1.4": "github.com/opencontainers/runc",
}


def test_the_newest_minor_comes_first() -> None:
    assert minors() == ("1.37", "1.36", "1.35", "1.34")


@pytest.mark.parametrize("version", ["1.37", "1.37.1", "v1.37.1"])
def test_a_minor_and_its_locked_patch_have_the_same_lock(version: str) -> None:
    assert lock_for(version).kubernetes == "1.37.1"


@pytest.mark.parametrize("version", ["1.33", "1.38.0", "1", "latest", ""])
def test_an_unknown_minor_is_refused_with_the_supported_ones(version: str) -> None:
    with pytest.raises(UsageError, match=r"1\.37, 1\.36, 1\.35, 1\.34"):
        lock_for(version)


def test_another_patch_is_refused_with_the_locked_one() -> None:
    with pytest.raises(UsageError, match=r"use 1\.36\.4"):
        lock_for("1.36.5")


def test_an_unknown_program_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean kubelet"):
        lock_for("1.37").program("kubelett")


@pytest.mark.parametrize("lock", [*map(lock_for, minors()), peers()], ids=lambda lock: lock.kubernetes)
def test_each_program_is_built_from_the_locked_version(lock: Lock) -> None:
    for program in lock.programs.values():
        module = MODULES[program.upstream.name]
        go_mod = (program.upstream.module_folder / "go.mod").read_text()

        assert f"require {module} v{program.version}\n" in go_mod
        assert program.package.startswith(module)
        assert f"{module} v{program.version} h1:" in (program.upstream.module_folder / "go.sum").read_text()


@pytest.mark.parametrize("minor", minors())
def test_each_minor_has_all_programs_of_a_local_cluster(minor: str) -> None:
    assert set(LocalProvider().programs()) <= set(lock_for(minor).programs)


def test_the_peers_are_not_in_the_lock_of_a_minor() -> None:
    assert set(peers().programs) == {"dra-example-kubeletplugin", "dra-test-driver", "dranet", "dracpu", "runc-1.4"}
    assert not any(set(peers().programs) & set(lock_for(minor).programs) for minor in minors())


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_each_url_is_complete_and_its_checksum_is_on_the_same_site(arch: str) -> None:
    for program in lock_for("1.37").programs.values():
        url = program.expand(program.upstream.download.url, arch)
        checksum = program.expand(program.upstream.download.checksum, arch, url)

        assert re.fullmatch(r"https://(dl\.k8s\.io|github\.com|get\.helm\.sh)/[\w./-]+", url)
        assert program.version in url
        assert checksum.split("/")[2] == url.split("/")[2]


def test_the_programs_of_kubernetes_are_built_with_their_version() -> None:
    kubelet = lock_for("1.35").program("kubelet")

    flags = [kubelet.expand(flag, "amd64") for flag in kubelet.upstream.build.ldflags]

    assert "-X k8s.io/component-base/version.gitVersion=v1.35.8" in flags
    assert "-X k8s.io/component-base/version.gitMinor=35" in flags


@pytest.mark.parametrize("minor", minors())
def test_each_minor_has_its_gates(minor: str) -> None:
    gates = lock_for(minor).gates

    assert gates["DynamicResourceAllocation"].stage == "ga"
    assert gates["DynamicResourceAllocation"].default
    assert {gate.stage for gate in gates.values()} == {"alpha", "beta", "ga", "deprecated"}
    assert all(need in gates for gate in gates.values() for need in gate.needs)


def test_a_gate_has_locked_and_needs() -> None:
    gates = lock_for("1.37").gates

    assert gates["DRAAdminAccess"].locked
    assert not gates["DRAConsumableCapacity"].locked
    assert gates["DRADeviceTaintRules"].needs == ["DRADeviceTaints"]
    assert lock_for("1.37").api_facts.unknown_to_scheduler == ["ControllerManagerReleaseLeaderElectionLockOnExit"]


@pytest.mark.parametrize("minor", minors())
def test_only_the_stable_resource_api_is_served_by_default(minor: str) -> None:
    versions = lock_for(minor).resource_versions

    assert [version for version, served in versions.items() if served] == ["v1"]
    assert {"v1beta1", "v1beta2", "v1alpha3"} < set(versions)


def test_the_toolchain_is_pinned_for_both_architectures() -> None:
    assert set(_locked().sha256) == {"amd64", "arm64"}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in _locked().sha256.values())


def test_the_locked_toolchain_builds_every_module() -> None:
    modules = (folders.data("versions") / "go").glob("*/go.mod")

    assert all(required_version(module.parent) <= parse_version(_locked().version) for module in modules)
