"""ResourceSlices as they should be, and the fewest writes that make them so. Pure; the publisher does the writing.

Each slice has a fixed name, so that two processes of one driver never publish a device twice: the second gets a conflict. The writes are
ordered and the generations chosen so that a scheduler sees the old pool, an incomplete pool (which it leaves alone) or the new pool.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_driver.hardware.model import Device, Value, Version

Object = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"
MOST_DEVICES = 128  # in one slice; the API server refuses more
_LONGEST_NAME = 253


@dataclass(frozen=True)
class Owner:
    """The node that the slices belong to; they go when its object goes."""

    name: str
    uid: str


@dataclass(frozen=True)
class Plan:
    """Writes, in the order in which they have to be made."""

    delete: tuple[Object, ...] = ()
    replace: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.replace or self.create)


def desired(driver: str, node: Owner, devices: Sequence[Device]) -> list[Object]:
    """The slices of this node's pool, all but the generation. A node without devices has one empty slice: the driver is alive."""
    parts = [devices[start : start + MOST_DEVICES] for start in range(0, len(devices), MOST_DEVICES)] or [()]
    return [_slice(driver, node, index, len(parts), part) for index, part in enumerate(parts)]


def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
    """The writes that lead from what exists to what is wanted.

    `accepted` says, for `key(slice)` of slices that we wrote, what we had asked for: where the API server keeps something else (a
    field whose feature is off), asking again would change nothing.
    """
    there = {slice_["metadata"]["name"]: slice_ for slice_ in existing}
    names = {slice_["metadata"]["name"] for slice_ in wanted}
    delete = tuple(slice_ for name, slice_ in there.items() if name not in names)
    stale = [slice_ for slice_ in wanted if not _as_wanted(there.get(slice_["metadata"]["name"]), slice_, accepted)]
    mixed = len({_generation(there[name]) for name in names & there.keys()}) > 1
    if not (delete or stale or mixed):
        return Plan()
    highest = max(map(_generation, there.values()), default=0)
    # A single write takes the pool from one whole state to the next; more need a new generation, which hides the states in between.
    bump = mixed or highest < 1 or len(delete) + len(stale) > 1
    writes = [_with_generation(slice_, highest + bump) for slice_ in (wanted if bump else stale)]
    return Plan(
        delete,
        tuple(_onto(there[new["metadata"]["name"]], new) for new in writes if new["metadata"]["name"] in there),
        tuple(new for new in writes if new["metadata"]["name"] not in there),
    )


def key(stored: Object) -> str:
    """One state of one slice's spec: changes with each write to it, whoever makes it."""
    return f"{stored['metadata'].get('uid')}/{stored['metadata'].get('generation')}"


def dropped(sent: Object, stored: Object) -> list[str]:
    """Paths of what we sent in the spec and the API server did not keep, because a feature is off."""
    return sorted(set(_leaves(sent["spec"], "spec")) - set(_leaves(stored["spec"], "spec")))


def comparable(slice_: Object) -> Object:
    """What has to be equal in two slices: the spec without the generation, and the owner."""
    spec = slice_.get("spec", {})
    pool = {name: value for name, value in spec.get("pool", {}).items() if name != "generation"}
    return {"spec": {**spec, "pool": pool}, "owners": slice_["metadata"].get("ownerReferences")}


def _as_wanted(there: Object | None, wanted: Object, accepted: Mapping[str, Object]) -> bool:
    if there is None:
        return False
    is_same = comparable(there) == comparable(wanted)
    return is_same or (accepted.get(key(there)) == comparable(wanted) and _owners(there) == _owners(wanted))


def _slice(driver: str, node: Owner, index: int, count: int, devices: Sequence[Device]) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
    # The API server stores no empty list, so we send none: what is stored shall be what was sent.
    content = {"devices": [_device(device) for device in devices]} if devices else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": _name(index, driver, node.name), "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": node.name,
            "pool": {"name": node.name, "resourceSliceCount": count},
            **content,
        },
    }


def _name(index: int, driver: str, node: str) -> str:
    """Starts with the index, because schedulers look at slices in the order of their names."""
    name = f"{index:05x}-{driver}-{node}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{index:05x}-{driver}-{hashlib.sha256(node.encode()).hexdigest()}"


def _device(device: Device) -> Object:
    attributes = {name: _attribute(value) for name, value in device.attributes.items()}
    content: Object = {"name": device.name, "attributes": attributes}
    if device.capacity:
        content["capacity"] = {name: {"value": amount} for name, amount in device.capacity.items()}
    return content


def _attribute(value: Value) -> Object:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version": value.text} if isinstance(value, Version) else {"string": value}


def _generation(slice_: Object) -> int:
    return int(slice_.get("spec", {}).get("pool", {}).get("generation") or 0)


def _with_generation(slice_: Object, generation: int) -> Object:
    return {**slice_, "spec": {**slice_["spec"], "pool": {**slice_["spec"]["pool"], "generation": generation}}}


def _onto(there: Object, new: Object) -> Object:
    """The new content for an object that exists; its resourceVersion makes a lost update a conflict."""
    return {**new, "metadata": {**new["metadata"], "resourceVersion": there["metadata"].get("resourceVersion")}}


def _owners(slice_: Object) -> Any:
    return slice_["metadata"].get("ownerReferences")


def _leaves(value: Any, path: str) -> Iterable[str]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path
