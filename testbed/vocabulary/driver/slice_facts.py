"""What ResourceSlices say of themselves: whose they are, and how many they are together. Pure; for `driver`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from testbed.kube.client import Object


def ownerless(slices: Iterable[Object], nodes: Mapping[str, str]) -> tuple[str, ...]:
    """The slices that name a node, and do not have it for an owner; `nodes` are UIDs by name. Those of no node are nobody's."""
    found = {each["metadata"]["name"]: str(each["spec"]["nodeName"]) for each in slices if not _owned(each, nodes)}
    return tuple(f"{name} of node {node}" for name, node in sorted(found.items()))


def contradictions(slices: Iterable[Object]) -> tuple[str, ...]:
    """The pools of a driver whose slices are of several generations, or count themselves differently."""
    said: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for each in slices:
        pool = each["spec"]["pool"]
        said[pool["name"]].add((int(pool["generation"]), int(pool["resourceSliceCount"])))
    return tuple(f"pool {name}: {_told(words)}" for name, words in sorted(said.items()) if len(words) > 1)


def _owned(slice_: Object, nodes: Mapping[str, str]) -> bool:
    node = slice_["spec"].get("nodeName")
    owners = slice_["metadata"].get("ownerReferences") or ()
    return not node or any(each["kind"] == "Node" and each["uid"] == nodes.get(node) for each in owners)


def _told(words: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"a slice of generation {generation} with {count} slices" for generation, count in sorted(words))
