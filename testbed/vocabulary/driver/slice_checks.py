"""Checks of ResourceSlices: their owners, and whether the slices of a pool agree. Pure; for Driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from testbed.kube.client import Object


def ownerless(slices: Iterable[Object], nodes: Mapping[str, str]) -> tuple[str, ...]:
    """Describe the slices of nodes that are not owned by their node. `nodes` are UIDs by name."""
    found = {each["metadata"]["name"]: str(each["spec"]["nodeName"]) for each in slices if not _owned(each, nodes)}
    return tuple(f"{name} of node {node}" for name, node in sorted(found.items()))


def contradictions(slices: Iterable[Object]) -> tuple[str, ...]:
    """Describe the pools whose slices differ in generation or resourceSliceCount."""
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for each in slices:
        pool = each["spec"]["pool"]
        found[pool["name"]].add((int(pool["generation"]), int(pool["resourceSliceCount"])))
    return tuple(f"pool {name}: {_description(pairs)}" for name, pairs in sorted(found.items()) if len(pairs) > 1)


def _owned(slice_: Object, nodes: Mapping[str, str]) -> bool:
    node = slice_["spec"].get("nodeName")
    owners = slice_["metadata"].get("ownerReferences") or ()
    return not node or any(each["kind"] == "Node" and each["uid"] == nodes.get(node) for each in owners)


def _description(pairs: Iterable[tuple[int, int]]) -> str:
    return ", ".join(
        f"a slice with generation {generation} and resourceSliceCount {count}" for generation, count in sorted(pairs)
    )
