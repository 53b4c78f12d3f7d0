"""Reads Node objects and waits until pods can run on nodes. Used by drivers, providers and `up`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from testbed.kube.client import Kube, Object
from testbed.waiting import Budget, NotYet, eventually, holds_for

_NODE_TAINTS = "node.kubernetes.io/"  # prefix of the taints that Kubernetes itself adds to unusable nodes
_NODES = Budget("nodes ready", 60, "1 s after the API server on a quiet machine; a minute on an emulated one")


def wait_until_usable(kube: Kube, names: Sequence[str], *, hint: str = "", hold: float = 0) -> None:
    """Wait until pods can run on these nodes, and until that has held for `hold` seconds."""
    _wait(holds_for(lambda: _check_all(kube, names, _unusable), hold), names, hint)


def wait_until_ready(kube: Kube, names: Sequence[str], *, hint: str = "") -> None:
    """Wait until these nodes are Ready. The taints of new nodes are removed later, by a controller."""
    _wait(lambda: _check_all(kube, names, _unready), names, hint)


def lasting_taints(node: Object) -> list[Object]:
    """Return the taints that keep ordinary pods away, without those that Kubernetes itself adds and removes."""
    taints = node.get("spec", {}).get("taints") or ()
    kept = [taint for taint in taints if not taint["key"].startswith(_NODE_TAINTS)]
    return [taint for taint in kept if taint["effect"] in ("NoSchedule", "NoExecute")]


def label(kube: Kube, labels: Mapping[str, str]) -> None:
    """Set labels on all nodes that take pods."""
    for node in kube.list("v1", "Node"):
        if not lasting_taints(node):
            target = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}}
            kube.patch(target, {"metadata": {"labels": dict(labels)}})


def is_cordoned(node: Object) -> bool:
    """Return True if the node is cordoned."""
    return bool(node.get("spec", {}).get("unschedulable"))


def is_ready(node: Object) -> bool:
    """Return True if the node is Ready."""
    return not _unready(node)


def operating_system(node: Object) -> str:
    """Return the node's operating system; linux if it does not report one."""
    reported = node.get("status", {}).get("nodeInfo", {}).get("operatingSystem")
    return str(reported or (node["metadata"].get("labels") or {}).get("kubernetes.io/os") or "linux")


def _wait(check: Callable[[], None], names: Sequence[str], hint: str) -> None:
    eventually(check, f"{len(names)} Ready nodes", _NODES, hint=hint, longest_pause=0.1)


def _check_all(kube: Kube, names: Sequence[str], problem_of: Callable[[Object], str]) -> None:
    problems = {node["metadata"]["name"]: problem_of(node) for node in kube.list("v1", "Node")}
    missing = {name: problems.get(name, "not registered") for name in names}
    seen = [f"{name}: {problem}" for name, problem in missing.items() if problem]
    if seen:
        raise NotYet(f"{len(names) - len(seen)} of {len(names)} nodes; " + "; ".join(seen))


def _unusable(node: Object) -> str:
    """Return why no pod can run on a node, or ''. A node keeps its not-ready taint for a moment after it is Ready."""
    taints = [taint["key"] for taint in node["spec"].get("taints", []) if taint["key"].startswith(_NODE_TAINTS)]
    return _unready(node) or (f"has the taint {', '.join(taints)}" if taints else "")


def _unready(node: Object) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    ready = next((each for each in conditions if each["type"] == "Ready"), {"message": "no Ready condition yet"})
    return "" if ready.get("status") == "True" else str(ready.get("message") or "not ready")
