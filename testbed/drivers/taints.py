"""Which taints keep the tests' pods from a node, after what the driver file tolerates. Pure; for readiness."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.kube.client import Object
from testbed.models.driver_sections import Toleration

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def keeping_away(node: Object, tolerations: Iterable[Toleration]) -> list[str]:
    """The taints of a node that no toleration fits, as kubectl writes them."""
    every = tuple(tolerations)
    # A node that is just becoming ready carries a taint for a moment more; that one passes, the others are somebody's will.
    taints = [taint for taint in node["spec"].get("taints", ()) if not taint["key"].startswith("node.kubernetes.io/")]
    return [_text(taint) for taint in taints if taint["effect"] in _KEEPS_AWAY and not _tolerated(taint, every)]


def _tolerated(taint: Object, tolerations: Iterable[Toleration]) -> bool:
    return any(_fits(each, taint) for each in tolerations)


def _fits(toleration: Toleration, taint: Object) -> bool:
    """As the scheduler takes it: what a toleration leaves out, it says of every taint."""
    return (
        toleration.effect in (None, taint["effect"])
        and toleration.key in ("", taint["key"])
        and (toleration.operator == "Exists" or toleration.value == taint.get("value", ""))
    )


def _text(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
