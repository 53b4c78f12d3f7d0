"""Finds the taints of a node that the tests' pods do not tolerate. Pure; used by `ready` and by diagnoses of pods."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.kube.client import Object
from testbed.kube.nodes import lasting_taints
from testbed.models.driver_sections import Toleration

_KUBERNETES = ("kubernetes.io", "k8s.io")  # no driver's own domain, although names of drivers may end with them


def untolerated_taints(node: Object, tolerations: Iterable[Toleration], installed: str = "") -> list[str]:
    """Return the taints of a node that no toleration matches, as kubectl writes them. Skip those in the domain of `installed`.

    `installed` is the name of a driver that runs already: a driver must not take its own nodes out of the judgement by a taint.
    """
    every = [each.model_dump() for each in tolerations]
    found = [taint for taint in lasting_taints(node) if not (installed and is_own_taint(str(taint["key"]), installed))]
    return [_text(taint) for taint in found if not is_tolerated(taint, every)]


def is_own_taint(key: str, driver: str) -> bool:
    """Return True if a taint is in the DNS domain of a driver: that of its name, one above it, or one below it."""
    domain, slash, _ = key.partition("/")
    if not slash or domain in _KUBERNETES:
        return False
    return is_named_after(key, driver) or ("." in domain and driver.endswith(f".{domain}"))


def is_named_after(key: str, driver: str) -> bool:
    """Return True if a taint is in the domain of a driver's name, or below. Clouds and administrators use domains above it, too."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain == driver or domain.endswith(f".{driver}"))


def is_tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    """Return True if a toleration matches a taint, as the scheduler decides it: an absent key or effect matches all."""
    return any(
        (each.get("effect") or taint["effect"]) == taint["effect"]
        and (each.get("key") or taint["key"]) == taint["key"]
        and (each.get("operator") == "Exists" or (each.get("value") or "") == taint.get("value", ""))
        for each in tolerations
    )


def _text(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
