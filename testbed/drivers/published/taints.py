"""Which taints keep the tests' pods from a node, after what the driver file tolerates. Pure; for readiness."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.kube.client import Object
from testbed.kube.nodes import lasting_taints
from testbed.models.driver_sections import Toleration


def untolerated_taints(node: Object, tolerations: Iterable[Toleration]) -> list[str]:
    """The taints of a node that no toleration fits, as kubectl writes them."""
    every = tuple(tolerations)
    return [_text(taint) for taint in lasting_taints(node) if not _tolerated(taint, every)]


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
