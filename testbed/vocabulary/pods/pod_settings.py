"""Adds to the pods of a manifest what tests in other people's clusters need, so that manifests contain only what they are about.

These are the tolerations of the driver file, because nodes with devices are often tainted, and the settings that the Pod Security
Standard `restricted` demands. Scenarios and canaries use it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile
from testbed.models.driver_sections import Toleration
from testbed.vocabulary.ledger import BEFORE_PODS

_TEMPLATE = ("spec", "template", "spec")
_POD_SPECS = {
    **dict.fromkeys(BEFORE_PODS, _TEMPLATE),
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
}
_NOBODY = 65534  # images of users may have no user, or one with a name, which the kubelet cannot tell from root
RESTRICTED_POD = {
    "runAsNonRoot": True,
    "runAsUser": _NOBODY,
    "runAsGroup": _NOBODY,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def with_pod_settings(manifest: Object, driver_file: DriverFile) -> Object:
    """Return the object with the settings of test pods. What the manifest sets itself is kept; without pods it is unchanged."""
    if not _creates_pods(manifest):
        return manifest
    made = copy.deepcopy(manifest) if driver_file.probe.as_root else restricted(manifest)
    _add_tolerations(_pod_spec(made), driver_file.nodes.tolerations)
    return made


def on_node(manifest: Object, node: str) -> Object:
    """Return the object with pods that the scheduler can bind only to this node. Pods that are bound to a node already are unchanged."""
    if not _creates_pods(manifest) or _pod_spec(manifest).get("nodeName"):
        return manifest
    made = copy.deepcopy(manifest)
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    _pod_spec(made).setdefault("affinity", {"nodeAffinity": required})
    return made


def restricted(manifest: Object) -> Object:
    """Return the object with pods that meet the Pod Security Standard `restricted`, unless the manifest sets something else."""
    if not _creates_pods(manifest):
        return manifest
    made = copy.deepcopy(manifest)
    pod = _pod_spec(made)
    pod["securityContext"] = {**RESTRICTED_POD, **(pod.get("securityContext") or {})}
    for each in _containers(pod):
        each["securityContext"] = {**RESTRICTED_CONTAINER, **(each.get("securityContext") or {})}
    return made


def _creates_pods(manifest: Object) -> bool:
    """Return False for other kinds, and for a manifest of a status only."""
    return manifest["kind"] in _POD_SPECS and "spec" in manifest


def _pod_spec(manifest: Object) -> Object:
    spec = manifest
    for key in _POD_SPECS[manifest["kind"]]:
        spec = spec[key]
    return spec


def _add_tolerations(pod: Object, tolerations: Sequence[Toleration]) -> None:
    if tolerations:
        pod["tolerations"] = [*(pod.get("tolerations") or ()), *(_plain(each) for each in tolerations)]


def _containers(pod: Object) -> Iterator[Object]:
    for key in _CONTAINERS:
        yield from pod.get(key) or ()


def _plain(toleration: Toleration) -> Object:
    return toleration.model_dump(by_alias=True, exclude_defaults=True)
