"""Checks of ResourceSlices: their owners, and whether the slices of a pool agree. Pure; for Driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from testbed.drivers.published.slices import Pool
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


PoolContent = Mapping[str, tuple[int, tuple[Object, ...]]]


def pool_content(pools: Iterable[Pool]) -> PoolContent:
    """Return generation and devices of each pool, in the order in which they are published. Slices are in that of their first devices."""
    found = {}
    for pool in pools:
        parts = [each["spec"]["devices"] for each in pool.slices if each["spec"].get("devices")]
        ordered = sorted(parts, key=lambda devices: min(str(device["name"]) for device in devices))
        found[pool.name] = (pool.generation, tuple(device for devices in ordered for device in devices))
    return found


def changes(before: PoolContent, now: PoolContent) -> list[str]:
    """Describe how pools differ from before: by their generation, by the order of their devices, or by the content of devices."""
    found = [f"pool {name} is gone" for name in before.keys() - now.keys()]
    for name in sorted(before.keys() & now.keys()):
        (generation, old), (later, new) = before[name], now[name]
        names, others = ([str(each["name"]) for each in devices] for devices in (old, new))
        changed = [str(one["name"]) for one in new if one not in old]
        if names != others and sorted(names) == sorted(others):
            found.append(f"the order of devices in pool {name} was {', '.join(names)}, and is {', '.join(others)}")
        elif changed or names != others:
            found.append(f"devices of pool {name} differ: {', '.join(changed or sorted({*names} ^ {*others}))}")
        if generation != later:
            found.append(f"the generation of pool {name} was {generation}, and is {later}")
    return found


def _owned(slice_: Object, nodes: Mapping[str, str]) -> bool:
    node = slice_["spec"].get("nodeName")
    owners = slice_["metadata"].get("ownerReferences") or ()
    return not node or any(each["kind"] == "Node" and each["uid"] == nodes.get(node) for each in owners)


def _description(pairs: Iterable[tuple[int, int]]) -> str:
    return ", ".join(
        f"a slice with generation {generation} and resourceSliceCount {count}" for generation, count in sorted(pairs)
    )
