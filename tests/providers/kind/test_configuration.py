"""The configuration for kind: the template, the user's settings, and the user's patch over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.errors import UsageError
from testbed.models.sections import KindSection, Mount
from testbed.providers.base import ClusterSpec
from testbed.providers.kind.configuration import SHARED, HostSettings, merge, mirror_files, read_patch, render

AROUND = HostSettings("node:new", "node:old", Path("/state/shared"), cgroup_v1=False, restrict_oom_score=False)


def made(spec: ClusterSpec, host: HostSettings = AROUND) -> Any:
    return yaml.safe_load(render("mine", spec, host))


def patched(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "patch.yaml"
    file.write_text(text)
    return made(ClusterSpec("1.37.1", nodes=2, options=KindSection.model_construct(patch=file)))


def test_one_control_plane_and_the_requested_workers_with_their_images() -> None:
    nodes = made(ClusterSpec("1.37.1", nodes=2))["nodes"]

    assert [(node["role"], node["image"]) for node in nodes] == [
        ("control-plane", "node:new"), ("worker", "node:old"), ("worker", "node:old"),
    ]  # fmt: skip


def test_every_node_mounts_the_shared_folder_read_only() -> None:
    for node in made(ClusterSpec("1.37.1"))["nodes"]:
        assert node["extraMounts"] == [{"hostPath": "/state/shared", "containerPath": SHARED, "readOnly": True}]


def test_gates_and_runtime_config_keep_their_types() -> None:
    config = made(ClusterSpec("1.37.1", feature_gates={"A": True, "B": False}, runtime_config={"api/alpha": "true"}))

    assert config["featureGates"] == {"A": True, "B": False}
    assert config["runtimeConfig"] == {"api/alpha": "true"}


def test_settings_for_limited_hosts_are_absent_on_other_hosts() -> None:
    poor = HostSettings("a", "a", Path("/s"), cgroup_v1=True, restrict_oom_score=True)
    there, here = render("x", ClusterSpec("1.37.1"), AROUND), render("x", ClusterSpec("1.37.1"), poor)

    for word in ("failCgroupV1: false", "restrict_oom_score_adj = true"):
        assert word in here
        assert word not in there


def test_the_cdi_folders_are_those_that_drivers_write_to() -> None:
    patches = made(ClusterSpec("1.37.1"))["containerdConfigPatches"]

    assert 'cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]' in patches[0]


def test_mounts_labels_and_mirrors_of_the_user_are_included() -> None:
    mirrors = {"registry.example": "http://mirror.example:5000"}
    mount = Mount.model_validate({"hostPath": "/dev/gpu", "containerPath": "/dev/gpu"})
    section = KindSection.model_construct(mounts=(mount,), node_labels={"gpu": "yes"}, registry_mirrors=mirrors)
    config = made(ClusterSpec("1.37.1", nodes=1, options=section))
    control_plane, worker = config["nodes"]

    assert (control_plane["labels"], worker["labels"]) == ({}, {"gpu": "yes"})
    assert {"hostPath": "/dev/gpu", "containerPath": "/dev/gpu", "readOnly": False} in worker["extraMounts"]
    assert any(mount["containerPath"] == "/etc/containerd/certs.d" for mount in worker["extraMounts"])
    assert "certs.d" in config["containerdConfigPatches"][1]
    assert 'host."http://mirror.example:5000"' in mirror_files(mirrors)["registry.example/hosts.toml"]


def test_a_patch_joins_maps_appends_lists_and_is_merged_into_all_nodes_of_its_role(tmp_path: Path) -> None:
    config = patched(
        tmp_path,
        "networking: {podSubnet: 10.9.0.0/16}\nkubeadmConfigPatches: [more]\n"
        "nodes:\n- role: worker\n  labels: {zone: a}\n  extraMounts: [{hostPath: /x, containerPath: /x}]\n",
    )

    assert config["networking"] == {"apiServerAddress": "127.0.0.1", "podSubnet": "10.9.0.0/16"}
    assert config["kubeadmConfigPatches"][-1] == "more"
    assert [node["labels"] for node in config["nodes"]] == [{}, {"zone": "a"}, {"zone": "a"}]
    assert [len(node["extraMounts"]) for node in config["nodes"]] == [1, 2, 2]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- a list", "is no part of a kind cluster configuration"),
        ("kind: Pod", "has kind Pod"),
        ("name: mine", "sets the cluster's name"),
        ("a: [", "cannot be read as YAML"),
        ("nodes:", "nodes is not a list of mappings"),
        ("nodes: {role: worker}", "nodes is not a list of mappings"),
        ("nodes: [worker]", "nodes is not a list of mappings"),
        ("nodes: [{role: wroker}]", "nodes has an entry with role wroker"),
        ("nodes: [{labels: {a: b}}]", "nodes has an entry without a role"),
        ("nodes: [{role: [worker]}]", "nodes has an entry with role"),
    ],
)
def test_a_wrong_patch_is_refused(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "patch.yaml").write_text(text)

    with pytest.raises(UsageError, match=what):
        read_patch(tmp_path / "patch.yaml")


def test_the_error_for_wrong_nodes_in_a_patch_has_an_example(tmp_path: Path) -> None:
    (tmp_path / "patch.yaml").write_text("nodes: [{role: wroker}]")

    with pytest.raises(UsageError) as told:
        read_patch(tmp_path / "patch.yaml")

    assert "role is control-plane or worker" in told.value.hint


def test_merging_changes_neither_side() -> None:
    below, above = {"a": {"b": 1}}, {"a": {"c": 2}}

    assert merge(below, above) == {"a": {"b": 1, "c": 2}}
    assert (below, above) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("text", "place", "near"),
    [
        ("nodez: []", "nodez", "nodes"),
        ("nodes: [{role: worker, lables: {}}]", "nodes.lables", "labels"),
        ("nodes: [{role: worker, extraMounts: [{hostpath: /a}]}]", "nodes.extraMounts.hostpath", "hostPath"),
        ("networking: {podSubnets: 10.0.0.0/8}", "networking.podSubnets", "podSubnet"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path: Path, text: str, place: str, near: str) -> None:
    (tmp_path / "patch.yaml").write_text(text)

    with pytest.raises(UsageError, match=rf"patch\.yaml(.|\n)* {place} is not a known key; did you mean {near}"):
        read_patch(tmp_path / "patch.yaml")


def test_free_keys_are_allowed_and_all_unknown_keys_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text("nodes: [{role: worker, labels: {zone: a}}]\nfeatureGates: {Mine: true}")
    assert read_patch(file)["featureGates"] == {"Mine": True}

    file.write_text("nodez: []\nnetworkin: {}")
    with pytest.raises(UsageError, match=r"nodez(.|\n)*networkin"):
        read_patch(file)
