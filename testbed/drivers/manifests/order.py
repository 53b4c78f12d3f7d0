"""Sorts the objects of a driver, and finds the namespaces that they need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from testbed.kube.client import Object

_FIRST = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
)  # without its account, a workload retries with a back-off


def in_order(objects: Iterable[Object]) -> list[Object]:
    """Return the objects with namespaces, definitions of resources and accounts first, which others need; the rest in their order."""
    return sorted(objects, key=lambda each: _FIRST.index(each["kind"]) if each["kind"] in _FIRST else len(_FIRST))


def undeclared_namespaces(objects: Sequence[Object], driver_namespace: str) -> Iterator[Object]:
    """Yield the namespaces of the objects and of the driver's pods that no object creates, as objects."""
    declared = {each["metadata"]["name"] for each in objects if each["kind"] == "Namespace"}
    named = {driver_namespace, *(each["metadata"].get("namespace") or driver_namespace for each in objects)}
    for name in sorted(named - declared):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
