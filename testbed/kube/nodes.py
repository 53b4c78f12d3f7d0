"""What Node objects say of themselves: whether ordinary pods run there. Drivers, providers and `up` ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.kube.client import Kube, Object
from testbed.waiting import Budget, NotYet, eventually, holds_for

_NODE_TAINTS = "node.kubernetes.io/"  # how the taints begin that Kubernetes itself gives to nodes in trouble
_NODES = Budget("nodes ready", 60, "1 s after the API server on a quiet machine; a minute on an emulated one")


def wait_until_usable(kube: Kube, names: Sequence[str], *, hint: str = "", hold: float = 0) -> None:
    """Wait until pods run on these nodes, and until that has held for so many seconds."""
    _wait(holds_for(lambda: _check_all(kube, names, _unusable), hold), names, hint)


def wait_until_ready(kube: Kube, names: Sequence[str], *, hint: str = "") -> None:
    """Wait until the kubelets of these nodes say that they are; the taints of new nodes go when a controller has seen it."""
    _wait(lambda: _check_all(kube, names, _unready), names, hint)


def lasting_taints(node: Object) -> list[Object]:
    """The taints that keep ordinary pods away for as long as somebody wills it."""
    # A node that is just becoming ready carries a taint for a moment more; that one passes, the others are somebody's will.
    taints = node.get("spec", {}).get("taints") or ()
    kept = [taint for taint in taints if not taint["key"].startswith(_NODE_TAINTS)]
    return [taint for taint in kept if taint["effect"] in ("NoSchedule", "NoExecute")]


def is_cordoned(node: Object) -> bool:
    """Whether no new pod is placed there for now."""
    return bool(node.get("spec", {}).get("unschedulable"))


def is_ready(node: Object) -> bool:
    """Whether its kubelet says that it is."""
    return not _unready(node)


def operating_system(node: Object) -> str:
    """The operating system that it runs; Linux where it does not say."""
    told = node.get("status", {}).get("nodeInfo", {}).get("operatingSystem")
    return str(told or (node["metadata"].get("labels") or {}).get("kubernetes.io/os") or "linux")


def _wait(check: Callable[[], None], names: Sequence[str], hint: str) -> None:
    eventually(check, f"{len(names)} Ready nodes", _NODES, hint=hint, longest_pause=0.1)


def _check_all(kube: Kube, names: Sequence[str], fault: Callable[[Object], str]) -> None:
    found = {node["metadata"]["name"]: fault(node) for node in kube.list("v1", "Node")}
    waiting = {name: found.get(name, "not registered") for name in names}
    seen = [f"{name}: {why}" for name, why in waiting.items() if why]
    if seen:
        raise NotYet(f"{len(names) - len(seen)} of {len(names)} nodes; " + "; ".join(seen))


def _unusable(node: Object) -> str:
    """Why no pod would run there yet. The taint of a node that is not ready outlives the condition by a moment."""
    taints = [taint["key"] for taint in node["spec"].get("taints", []) if taint["key"].startswith(_NODE_TAINTS)]
    return _unready(node) or (f"still tainted with {', '.join(taints)}" if taints else "")


def _unready(node: Object) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    ready = next((each for each in conditions if each["type"] == "Ready"), {"message": "no Ready condition yet"})
    return "" if ready.get("status") == "True" else str(ready.get("message") or "not ready")
