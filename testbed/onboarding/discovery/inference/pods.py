"""Finds the pods of a driver, what their nodes need, and its version. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import DriverPods

_PLUGINS = "/var/lib/kubelet/plugins"
_NRI = ("/var/run/nri", "/run/nri")
_OF_EVERY_NODE = ("kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname")


@dataclass(frozen=True)
class PodsFinding:
    """Where a driver's pods are, and what its DaemonSet asks of nodes."""

    daemonset: str
    namespace: str
    selector: str
    container: str
    image: str
    labels: Mapping[str, str]
    needs: tuple[str, ...]

    @property
    def version(self) -> str:
        """Return the version in the image's tag, or ''."""
        tag = re.search(r":v?(\d+\.\d[\w.+-]*)$", self.image.partition("@")[0])
        return tag[1] if tag else ""


def candidates(daemonsets: Iterable[DriverPods], driver: str, nodes: Collection[str]) -> list[DriverPods]:
    """Return the DaemonSets that may be the driver, the best first: those that can register with the kubelet."""
    able = [each for each in daemonsets if _mounts_plugins(each.daemonset)]

    def missing(each: DriverPods) -> int:
        return len(set(nodes) - {pod["spec"].get("nodeName") for pod in each.pods})

    return sorted(able, key=lambda each: (*_doubts(each, driver), missing(each)))


def is_clear(found: Sequence[DriverPods], driver: str) -> bool:
    """Return True if only the first of the candidates can publish devices, or only it names the driver."""
    return len(found) == 1 or _doubts(found[0], driver) < _doubts(found[1], driver)


def _doubts(found: DriverPods, driver: str) -> tuple[bool, bool]:
    """Return whether the account may not write ResourceSlices, and whether the DaemonSet does not name the driver."""
    return not found.writes_slices, driver not in json.dumps(found.daemonset["spec"])


def describe(found: DriverPods) -> PodsFinding:
    """Return what a driver file says about these pods."""
    metadata, spec = found.daemonset["metadata"], found.daemonset["spec"]
    pod = spec["template"]["spec"]
    container = _plugin_container(pod)
    needs = ("nri",) if any(path.startswith(_NRI) for path in host_paths(pod).values()) else ()
    return PodsFinding(
        metadata["name"],
        metadata["namespace"],
        selector_text(spec["selector"]),
        container["name"],
        str(container.get("image", "")),
        node_labels(pod),
        needs,
    )


def selector_text(selector: Object) -> str:
    """Return a label selector as text."""
    labels = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    return ",".join([*labels, *map(_expression, selector.get("matchExpressions") or ())])


def node_labels(pod: Object) -> dict[str, str]:
    """Return the labels that nodes need so that the pod runs there, of its selector and of its first required affinity."""
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = affinity.get("nodeSelectorTerms") or [{}]
    wanted = dict(pod.get("nodeSelector") or {})
    for each in terms[0].get("matchExpressions") or ():
        if each["operator"] == "In":
            wanted.setdefault(each["key"], each["values"][0])
        elif each["operator"] == "Exists":
            wanted.setdefault(each["key"], "true")
    return {key: value for key, value in wanted.items() if key not in _OF_EVERY_NODE}


def host_paths(pod: Object) -> dict[str, str]:
    """Return the paths of the node that a pod mounts, by the names of its volumes."""
    return {
        each["name"]: str(each["hostPath"].get("path", "")).rstrip("/")
        for each in pod.get("volumes") or ()
        if each.get("hostPath")
    }


def _mounts_plugins(daemonset: Object) -> bool:
    paths = host_paths(daemonset["spec"]["template"]["spec"]).values()
    return any(path.startswith(_PLUGINS) or _PLUGINS.startswith(f"{path}/") for path in paths)


def _plugin_container(pod: Object) -> Object:
    """Return the container that mounts the folder of the kubelet's plugins; the first one if there is none."""
    plugins = {
        name for name, path in host_paths(pod).items() if path.startswith(_PLUGINS) or _PLUGINS.startswith(f"{path}/")
    }
    mounting = [
        each for each in pod["containers"] if plugins & {mount["name"] for mount in each.get("volumeMounts") or ()}
    ]
    found: Object = [*mounting, *pod["containers"]][0]
    return found


def _expression(each: Mapping[str, object]) -> str:
    key, operator, values = each["key"], each["operator"], each.get("values") or ()
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {'in' if operator == 'In' else 'notin'} ({','.join(map(str, values))})"  # type: ignore[call-overload]
