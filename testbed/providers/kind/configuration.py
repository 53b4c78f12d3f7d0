"""Renders the configuration for `kind create cluster`: our template with the user's patch merged over it. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed import folders
from testbed.errors import UsageError, did_you_mean
from testbed.models.sections import KindSection
from testbed.providers.base import ClusterSpec
from testbed.rendering import render_file

# In every node, the mount of a folder of this host: it passes archives to the node, and its source names the testbed.
SHARED = "/kind/dra-testbed"
_API_VERSION = "kind.x-k8s.io/v1alpha4"
_NODES = "nodes"  # its entries are merged by role
_ROLES = ("control-plane", "worker")
_PATCHES = {"kubeadmConfigPatches", "kubeadmConfigPatchesJSON6902"}
# The keys that kind reads, by path; below other paths, all keys are allowed. kind refuses unknown keys too, but late.
_KEYS: Mapping[tuple[str, ...], set[str]] = {
    (): {
        "kind", "apiVersion", "name", "nodes", "networking", "featureGates", "runtimeConfig", *_PATCHES,
        "containerdConfigPatches", "containerdConfigPatchesJSON6902",
    },
    ("nodes",): {"role", "image", "labels", *_PATCHES, "extraMounts", "extraPortMappings"},
    ("nodes", "extraMounts"): {"containerPath", "hostPath", "readOnly", "selinuxRelabel", "propagation"},
    ("nodes", "extraPortMappings"): {"containerPort", "hostPort", "listenAddress", "protocol"},
    ("networking",): {
        "ipFamily", "apiServerPort", "apiServerAddress", "podSubnet", "serviceSubnet", "disableDefaultCNI",
        "kubeProxyMode", "dnsSearch",
    },
}  # fmt: skip


@dataclass(frozen=True)
class HostSettings:
    """The input that depends on the host and on earlier steps."""

    control_plane_image: str
    worker_image: str
    shared: Path
    cgroup_v1: bool
    restrict_oom_score: bool


def render(name: str, spec: ClusterSpec, host: HostSettings) -> str:
    """Return the whole configuration as YAML."""
    section = section_of(spec)
    made = render_file(
        folders.data("manifests") / "clusters" / "kind.yaml",
        {
            "name": name,
            "feature_gates": json.dumps(dict(spec.feature_gates)),
            "runtime_config": json.dumps(dict(spec.runtime_config)),
            "cgroup_v1": host.cgroup_v1,
            "restrict_oom_score": host.restrict_oom_score,
            "mirrors": bool(section.registry_mirrors),
            "nodes": _nodes(spec, section, host),
        },
    )
    content = yaml.safe_load(made)
    if section.patch:
        content = merge(content, read_patch(section.patch))
    return yaml.safe_dump(content, sort_keys=False)


def section_of(spec: ClusterSpec) -> KindSection:
    """Return the testbed configuration's section for kind."""
    return spec.options if isinstance(spec.options, KindSection) else KindSection()


def mirror_files(mirrors: Mapping[str, str]) -> dict[str, str]:
    """Return the content of containerd's hosts.toml for each registry, by path below certs.d."""
    return {
        f"{registry}/hosts.toml": f'server = "https://{registry}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'
        for registry, url in mirrors.items()
    }


def read_patch(path: Path) -> dict[str, Any]:
    """Read the user's patch, a part of a kind cluster configuration. Raise UsageError for anything that kind would refuse."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as broken:
        raise UsageError(f"{path} cannot be read as YAML: {broken}") from broken
    if not isinstance(content, dict):
        raise UsageError(
            f"{path} is no part of a kind cluster configuration", hint="it must be a mapping, such as `nodes: […]`"
        )
    given = (content.get("kind", "Cluster"), content.get("apiVersion", _API_VERSION))
    if given != ("Cluster", _API_VERSION):
        raise UsageError(
            f"{path} has kind {given[0]}, apiVersion {given[1]}", hint=f"kind: Cluster, apiVersion: {_API_VERSION}"
        )
    if "name" in content:
        raise UsageError(f"{path} sets the cluster's name", hint="remove `name`; --name names the testbed")
    unknown = list(_unknown_keys(content))
    if unknown:
        raise UsageError("\n  ".join([f"{path} has keys that kind does not know:", *unknown]))
    if _NODES in content:
        _check_nodes(path, content[_NODES])
    return content


def _unknown_keys(content: Any, place: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a line for each unknown key, with suggestions. Skip values that should be mappings and are not: kind checks those."""
    for each in content if isinstance(content, list) else [content]:
        if place not in _KEYS or not isinstance(each, dict):
            continue
        for key, value in each.items():
            if key in _KEYS[place]:
                yield from _unknown_keys(value, (*place, key))
            else:
                hint = did_you_mean(str(key), _KEYS[place])
                yield f"{'.'.join([*place, str(key)])} is not a known key" + (f"; {hint}" if hint else "")


def _check_nodes(path: Path, nodes: Any) -> None:
    """Raise UsageError for an entry without a role: entries are merged into the nodes of their role."""
    hint = "nodes: [{role: worker, labels: {zone: a}}]; the role is control-plane or worker"
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        raise UsageError(f"{path}: nodes is not a list of mappings", hint=hint)
    for node in nodes:
        if node.get("role") not in _ROLES:
            role = f"with role {node['role']}" if "role" in node else "without a role"
            raise UsageError(f"{path}: nodes has an entry {role}", hint=hint)


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge two configurations: join mappings, append lists, replace other values. Merge an entry of `nodes` into all nodes of its role."""
    made = dict(below)
    for key, value in above.items():
        if key == _NODES and key in below:
            made[key] = [_with_patches(node, value) for node in below[key]]
        else:
            made[key] = _joined(below.get(key), value)
    return made


def _with_patches(node: dict[str, Any], patches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for patch in patches:
        if patch["role"] == node["role"]:
            node = merge(node, patch)
    return node


def _joined(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return merge(below, above)
    if isinstance(below, list) and isinstance(above, list):
        return [*below, *above]
    return above


def _nodes(spec: ClusterSpec, section: KindSection, host: HostSettings) -> list[dict[str, str]]:
    shared = [{"hostPath": str(host.shared), "containerPath": SHARED, "readOnly": True}]
    if section.registry_mirrors:
        certificates = {"hostPath": str(host.shared / "certs.d"), "containerPath": "/etc/containerd/certs.d"}
        shared.append({**certificates, "readOnly": True})
    mounts = json.dumps([*shared, *(mount.model_dump(by_alias=True) for mount in section.mounts)])
    control_plane = {"role": "control-plane", "image": host.control_plane_image, "labels": "{}", "mounts": mounts}
    labels = json.dumps(section.node_labels)
    worker = {"role": "worker", "image": host.worker_image, "labels": labels, "mounts": mounts}
    return [control_plane, *([worker] * spec.nodes)]
