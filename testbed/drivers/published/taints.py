"""Finds the taints of a node that the tests' pods do not tolerate. Pure; used by `ready`."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.kube.client import Object
from testbed.kube.nodes import lasting_taints
from testbed.models.driver_sections import Toleration


def untolerated_taints(node: Object, tolerations: Iterable[Toleration]) -> list[str]:
    """Return the taints of a node that no toleration matches, as kubectl writes them."""
    every = tuple(tolerations)
    return [_text(taint) for taint in lasting_taints(node) if not any(_matches(each, taint) for each in every)]


def _matches(toleration: Toleration, taint: Object) -> bool:
    """Return True if a toleration matches a taint, as the scheduler decides it: an absent key or effect matches all."""
    return (
        toleration.effect in (None, taint["effect"])
        and toleration.key in ("", taint["key"])
        and (toleration.operator == "Exists" or toleration.value == taint.get("value", ""))
    )


def _text(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
