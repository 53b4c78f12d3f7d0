from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed import process
from testbed.images.node import own_files
from testbed.images.tarball import Member


@pytest.fixture
def members() -> dict[str, Member]:
    return {member.path: member for member in own_files.members()}


def _text(member: Member) -> str:
    assert isinstance(member.content, Path)
    return member.content.read_text()


def test_the_pod_network_is_executable_and_its_unit_is_enabled(members: dict[str, Member]) -> None:
    assert members["kind/bin/pod-network"].mode == 0o755
    assert "ExecStart=/kind/bin/pod-network\n" in _text(members["etc/systemd/system/pod-network.service"])
    assert "etc/systemd/system/multi-user.target.wants/pod-network.service" in members


def test_the_pod_network_is_a_valid_bash_script(members: dict[str, Member]) -> None:
    assert process.run(["bash", "-n"], input=_text(members["kind/bin/pod-network"])).ok


def test_nodes_may_only_read_nodes(members: dict[str, Member]) -> None:
    role, binding = yaml.safe_load_all(_text(members["kind/manifests/default-cni.yaml"]))

    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == ["system:nodes"]


def test_kind_does_not_patch_the_manifest(members: dict[str, Member]) -> None:
    assert "would you kindly" not in _text(members["kind/manifests/default-cni.yaml"])


def test_the_storage_class_is_the_default_one(members: dict[str, Member]) -> None:
    storage = yaml.safe_load(_text(members["kind/manifests/default-storage.yaml"]))

    assert storage["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}


def test_the_kubelet_reads_the_folder_that_allows_cgroup_v1(members: dict[str, Member]) -> None:
    unit = _text(members["etc/systemd/system/kubelet.service.d/12-dra-testbed.conf"])
    setting = yaml.safe_load(_text(members["etc/dra-testbed/kubelet/10-cgroup-v1.conf"]))

    assert "--config-dir=/etc/dra-testbed/kubelet" in unit
    assert setting == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
    }


def test_the_digest_changes_with_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_FILES", tmp_path)
    (tmp_path / "a").write_text("one")
    first = own_files.digest()
    (tmp_path / "a").write_text("two")

    assert own_files.digest() != first
