"""What Node objects say of themselves: whether ordinary pods run there. Drivers and the provider `existing` ask."""

from __future__ import annotations

from testbed.kube.client import Object


def lasting_taints(node: Object) -> list[Object]:
    """The taints that keep ordinary pods away for as long as somebody wills it."""
    # A node that is just becoming ready carries a taint for a moment more; that one passes, the others are somebody's will.
    taints = node.get("spec", {}).get("taints") or ()
    kept = [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
    return [taint for taint in kept if taint["effect"] in ("NoSchedule", "NoExecute")]


def is_cordoned(node: Object) -> bool:
    """Whether no new pod is placed there for now."""
    return bool(node.get("spec", {}).get("unschedulable"))


def is_ready(node: Object) -> bool:
    """Whether its kubelet says that it is."""
    conditions = node.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def system(node: Object) -> str:
    """The operating system that it runs; Linux where it does not say."""
    told = node.get("status", {}).get("nodeInfo", {}).get("operatingSystem")
    return str(told or (node["metadata"].get("labels") or {}).get("kubernetes.io/os") or "linux")
