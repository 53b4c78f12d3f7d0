"""The fewest writes that make the slices in the API server what they should be. Pure; the publisher does the writing.

The writes are ordered and the generations chosen so that a scheduler sees the old pool, an incomplete pool (which it leaves alone) or
the new pool. Each pool has a generation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_driver.publishing.slices import Object, pool_name, with_devices


@dataclass(frozen=True)
class Plan:
    """Writes, in the order in which they have to be made."""

    delete: tuple[Object, ...] = ()
    replace: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.replace or self.create)

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.delete + other.delete, self.replace + other.replace, self.create + other.create)


Planner = Callable[[Sequence[Object], Iterable[Object], Mapping[str, Object]], Plan]


def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
    """The writes that lead from what exists to what is wanted.

    `accepted` says, for `key(slice)` of slices that we wrote, what we had asked for: where the API server keeps something else (a
    field whose feature is off), asking again would change nothing.
    """
    there = list(existing)
    whole = Plan()
    for pool in dict.fromkeys(map(pool_name, [*there, *wanted])):
        ours = [slice_ for slice_ in wanted if pool_name(slice_) == pool]
        whole += _of_pool(ours, {_name(slice_): slice_ for slice_ in there if pool_name(slice_) == pool}, accepted)
    return whole


def state_key(stored: Object) -> str:
    """One state of one slice's spec: changes with each write to it, whoever makes it."""
    return f"{stored['metadata'].get('uid')}/{stored['metadata'].get('generation')}"


def comparable(slice_: Object) -> Object:
    """What has to be equal in two slices: the spec without the generation and the times of taints, and the owner."""
    spec = slice_.get("spec", {})
    pool = {name: value for name, value in spec.get("pool", {}).items() if name != "generation"}
    content = {**spec, "pool": pool}
    if "devices" in spec:
        content["devices"] = [_without_times(device) for device in spec["devices"]]
    return {"spec": content, "owners": slice_["metadata"].get("ownerReferences")}


def with_generation(slice_: Object, generation: int) -> Object:
    """The slice with this generation of its pool."""
    return {**slice_, "spec": {**slice_["spec"], "pool": {**slice_["spec"]["pool"], "generation": generation}}}


def generation_of(slice_: Object) -> int:
    """The generation of the pool that the slice belongs to."""
    return int(slice_.get("spec", {}).get("pool", {}).get("generation") or 0)


def as_update_of(there: Object, new: Object) -> Object:
    """The new content for an object that exists; its resourceVersion makes a lost update a conflict. Taints keep their times."""
    written = {**new, "metadata": {**new["metadata"], "resourceVersion": there["metadata"].get("resourceVersion")}}
    times = {
        (device["name"], *_taint(taint)): taint["timeAdded"]
        for device in there["spec"].get("devices") or ()
        for taint in device.get("taints") or ()
        if "timeAdded" in taint
    }
    if not times:
        return written
    return with_devices(written, [_with_times(device, times) for device in new["spec"].get("devices") or ()])


def _of_pool(wanted: Sequence[Object], there: Mapping[str, Object], accepted: Mapping[str, Object]) -> Plan:
    names = {_name(slice_) for slice_ in wanted}
    delete = tuple(slice_ for name, slice_ in there.items() if name not in names)
    stale = [slice_ for slice_ in wanted if not _as_wanted(there.get(_name(slice_)), slice_, accepted)]
    mixed = len({generation_of(there[name]) for name in names & there.keys()}) > 1
    if not (delete or stale or mixed):
        return Plan()
    highest = max(map(generation_of, there.values()), default=0)
    # A single write takes the pool from one whole state to the next; more need a new generation, which hides the states in between.
    bump = mixed or highest < 1 or len(delete) + len(stale) > 1
    writes = [with_generation(slice_, highest + bump) for slice_ in (wanted if bump else stale)]
    return Plan(
        delete,
        tuple(as_update_of(there[_name(new)], new) for new in writes if _name(new) in there),
        tuple(new for new in writes if _name(new) not in there),
    )


def _as_wanted(there: Object | None, wanted: Object, accepted: Mapping[str, Object]) -> bool:
    if there is None:
        return False
    is_same = comparable(there) == comparable(wanted)
    return is_same or (accepted.get(state_key(there)) == comparable(wanted) and _owners(there) == _owners(wanted))


def _name(slice_: Object) -> str:
    return str(slice_["metadata"]["name"])


def _owners(slice_: Object) -> Any:
    return slice_["metadata"].get("ownerReferences")


def _taint(taint: Object) -> tuple[Any, ...]:
    return taint.get("key"), taint.get("value"), taint.get("effect")


def _with_times(device: Object, times: Mapping[tuple[Any, ...], str]) -> Object:
    if "taints" not in device:
        return device
    known = [(taint, times.get((device["name"], *_taint(taint)))) for taint in device["taints"]]
    return {**device, "taints": [{**taint, "timeAdded": time} if time else taint for taint, time in known]}


def _without_times(device: Object) -> Object:
    if "taints" not in device:
        return device
    taints = [{name: value for name, value in taint.items() if name != "timeAdded"} for taint in device["taints"]]
    return {**device, "taints": taints}
