"""The fewest writes that make the slices in the API server what they should be. Pure; the publisher does the writing.

The writes are ordered and the generations chosen so that a scheduler sees the old pool, an incomplete pool (which it leaves alone) or
the new pool. Each pool has a generation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_driver.devices.counters import is_too_much
from fake_driver.devices.model import Amounts, Draw
from fake_driver.publishing.slices import Object

# Which feature gate of the API server keeps a field; without it the field is dropped without a word.
_GATES = {
    "taints": "DRADeviceTaints",
    "sharedCounters": "DRAPartitionableDevices",
    "consumesCounters": "DRAPartitionableDevices",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "requestPolicy": "DRAConsumableCapacity",
    "bindsToNode": "DRADeviceBindingConditions",
    "bindingConditions": "DRADeviceBindingConditions",
    "bindingFailureConditions": "DRADeviceBindingConditions",
    "bools": "DRAListTypeAttributes",
    "ints": "DRAListTypeAttributes",
    "strings": "DRAListTypeAttributes",
    "versions": "DRAListTypeAttributes",
}
_LISTS = frozenset({"bools", "ints", "strings", "versions"})


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
    for pool in dict.fromkeys(map(_pool, [*there, *wanted])):
        ours = [slice_ for slice_ in wanted if _pool(slice_) == pool]
        whole += _of_pool(ours, {_name(slice_): slice_ for slice_ in there if _pool(slice_) == pool}, accepted)
    return whole


def state_key(stored: Object) -> str:
    """One state of one slice's spec: changes with each write to it, whoever makes it."""
    return f"{stored['metadata'].get('uid')}/{stored['metadata'].get('generation')}"


def dropped_fields(sent: Object, stored: Object) -> list[str]:
    """Paths of what we sent in the spec and the API server did not keep, because a feature is off."""
    return sorted(set(_leaves(sent["spec"], "spec")) - set(_leaves(stored["spec"], "spec")))


def feature_gates(fields: Iterable[str]) -> list[str]:
    """The feature gates that would keep these fields."""
    words = {word.partition("[")[0] for field in fields for word in field.split(".")}
    return sorted({_GATES[word] for word in words & _GATES.keys()})


def only_lacks_fields(stored: Object, wanted: Object) -> bool:
    """Whether what is stored is what we want without some fields, as an API server with a feature off leaves it."""
    has, wants = (dict(_leaves_and_values(comparable(each), "")) for each in (stored, wanted))
    return has != wants and has.items() <= wants.items()


def comparable(slice_: Object) -> Object:
    """What has to be equal in two slices: the spec without the generation and the times of taints, and the owner."""
    spec = slice_.get("spec", {})
    pool = {name: value for name, value in spec.get("pool", {}).items() if name != "generation"}
    content = {**spec, "pool": pool}
    if "devices" in spec:
        content["devices"] = [_without_times(device) for device in spec["devices"]]
    return {"spec": content, "owners": slice_["metadata"].get("ownerReferences")}


def without_list_attributes(slices: Iterable[Object]) -> list[Object]:
    """The slices without attributes that are lists: an API server that has that feature off refuses the whole slice for one of them."""
    return [
        _with_devices(each, [_without_lists(device) for device in each["spec"].get("devices") or ()]) for each in slices
    ]


def consumes_counters(slice_: Object) -> bool:
    """Whether a device in it draws from counters."""
    return any(device.get("consumesCounters") for device in slice_["spec"].get("devices") or ())


def without_overlapping_devices(slices: Sequence[Object]) -> list[Object]:
    """The slices with only those devices that can all be used at the same time, the first ones first: wholes, and not their parts.

    An API server that drops what devices draw from counters would hide from schedulers that the others are the same hardware.
    """
    sets = {
        (_pool(each), one["name"]): _plain(one["counters"])
        for each in slices for one in each["spec"].get("sharedCounters") or ()
    }  # fmt: skip
    taken: dict[tuple[str, str], list[Draw]] = {}
    return [
        _with_devices(each, [one for one in each["spec"].get("devices") or () if _fits(_pool(each), one, sets, taken)])
        for each in slices
    ]


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
    return _with_devices(written, [_with_times(device, times) for device in new["spec"].get("devices") or ()])


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


def _pool(slice_: Object) -> str:
    return str(slice_["spec"]["pool"]["name"])


def _owners(slice_: Object) -> Any:
    return slice_["metadata"].get("ownerReferences")


def _taint(taint: Object) -> tuple[Any, ...]:
    return taint.get("key"), taint.get("value"), taint.get("effect")


def _with_devices(slice_: Object, devices: list[Object]) -> Object:
    """The slice with these devices. The API server stores no empty list, so there is none."""
    others = {name: value for name, value in slice_["spec"].items() if name != "devices"}
    return {**slice_, "spec": {**others, **({"devices": devices} if devices else {})}}


def _fits(
    pool: str, device: Object, sets: Mapping[tuple[str, str], Amounts], taken: dict[tuple[str, str], list[Draw]]
) -> bool:
    """Whether there is still enough for a device; if so, it is taken."""
    wanted = {
        (pool, one["counterSet"]): Draw(one["counterSet"], _plain(one["counters"]), sets.get((pool, one["counterSet"]), {}))
        for one in device.get("consumesCounters") or ()
    }  # fmt: skip
    if any(is_too_much([*taken.get(where, ()), draw]) for where, draw in wanted.items()):
        return False
    for where, draw in wanted.items():
        taken.setdefault(where, []).append(draw)
    return True


def _plain(counters: Object) -> Amounts:
    return {name: str(counter["value"]) for name, counter in counters.items()}


def _without_lists(device: Object) -> Object:
    if "attributes" not in device:
        return device
    kept = {name: value for name, value in device["attributes"].items() if not value.keys() & _LISTS}
    return {**device, "attributes": kept}


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


def _leaves(value: Any, path: str) -> Iterator[str]:
    return (where for where, _ in _leaves_and_values(value, path))


def _leaves_and_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves_and_values(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves_and_values(inner, f"{path}[{index}]")
    else:
        yield path, value
