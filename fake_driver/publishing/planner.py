"""Plans the fewest writes that turn the stored ResourceSlices into the wanted ones. Pure; the publisher executes them.

The order of the writes and the pool generations ensure that a scheduler always sees the old pool, the new pool, or an incomplete pool,
which it ignores. Each pool has its own generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_driver.publishing.slices import Object, pool_name, with_devices


@dataclass(frozen=True)
class Plan:
    """Writes in the order in which they must be made: delete, replace, create."""

    delete: tuple[Object, ...] = ()
    replace: tuple[Object, ...] = ()
    create: tuple[Object, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.replace or self.create)

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.delete + other.delete, self.replace + other.replace, self.create + other.create)


Planner = Callable[[Sequence[Object], Iterable[Object], Mapping[str, Object]], Plan]


def plan(wanted: Sequence[Object], existing: Iterable[Object], accepted: Mapping[str, Object]) -> Plan:
    """Return the writes that turn the existing slices into the wanted ones.

    `accepted` maps the `state_key` of a stored slice to what was sent for it. If the API server stored something else, because a feature is
    off, sending the same again would change nothing.
    """
    stored = list(existing)
    complete = Plan()
    for pool in dict.fromkeys(map(pool_name, [*stored, *wanted])):
        wanted_here = [slice_ for slice_ in wanted if pool_name(slice_) == pool]
        stored_here = {_name(slice_): slice_ for slice_ in stored if pool_name(slice_) == pool}
        complete += _plan_pool(wanted_here, stored_here, accepted)
    return complete


def state_key(stored: Object) -> str:
    """Return a key for one state of a slice's spec; it changes with each write to the spec."""
    return f"{stored['metadata'].get('uid')}/{stored['metadata'].get('generation')}"


def comparable(slice_: Object) -> Object:
    """Return the parts of a slice that are compared: the owner, and the spec without the generation and the times of taints."""
    spec = slice_.get("spec", {})
    pool = {name: value for name, value in spec.get("pool", {}).items() if name != "generation"}
    content = {**spec, "pool": pool}
    if "devices" in spec:
        content["devices"] = [_without_times(device) for device in spec["devices"]]
    return {"spec": content, "owners": slice_["metadata"].get("ownerReferences")}


def with_generation(slice_: Object, generation: int) -> Object:
    """Return the slice with this pool generation."""
    return {**slice_, "spec": {**slice_["spec"], "pool": {**slice_["spec"]["pool"], "generation": generation}}}


def generation_of(slice_: Object) -> int:
    """Return the pool generation of a slice; 0 if it has none."""
    return int(slice_.get("spec", {}).get("pool", {}).get("generation") or 0)


def as_update_of(stored: Object, new: Object) -> Object:
    """Return the new slice as an update of the stored one.

    Its resourceVersion turns a lost update into a conflict. Taints keep their times.
    """
    written = {**new, "metadata": {**new["metadata"], "resourceVersion": stored["metadata"].get("resourceVersion")}}
    times = {
        (device["name"], *_taint(taint)): taint["timeAdded"]
        for device in stored["spec"].get("devices") or ()
        for taint in device.get("taints") or ()
        if "timeAdded" in taint
    }
    if not times:
        return written
    return with_devices(written, [_with_times(device, times) for device in new["spec"].get("devices") or ()])


def _plan_pool(wanted: Sequence[Object], stored: Mapping[str, Object], accepted: Mapping[str, Object]) -> Plan:
    names = {_name(slice_) for slice_ in wanted}
    delete = tuple(slice_ for name, slice_ in stored.items() if name not in names)
    stale = [slice_ for slice_ in wanted if not _is_as_wanted(stored.get(_name(slice_)), slice_, accepted)]
    mixed = len({generation_of(stored[name]) for name in names & stored.keys()}) > 1
    if not (delete or stale or mixed):
        return Plan()
    highest = max(map(generation_of, stored.values()), default=0)
    # A single write changes the pool atomically. More writes need a new generation, which makes the states in between incomplete.
    bump = mixed or highest < 1 or len(delete) + len(stale) > 1
    writes = [with_generation(slice_, highest + bump) for slice_ in (wanted if bump else stale)]
    return Plan(
        delete,
        tuple(as_update_of(stored[_name(new)], new) for new in writes if _name(new) in stored),
        tuple(new for new in writes if _name(new) not in stored),
    )


def _is_as_wanted(stored: Object | None, wanted: Object, accepted: Mapping[str, Object]) -> bool:
    if stored is None:
        return False
    if comparable(stored) == comparable(wanted):
        return True
    return accepted.get(state_key(stored)) == comparable(wanted) and _owners(stored) == _owners(wanted)


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
