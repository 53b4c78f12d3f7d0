"""ResourceSlices as they should be, in the shape of resource.k8s.io/v1. Pure; `planning` compares them with what exists.

Each slice has a fixed name, so that two processes of one driver never publish a device twice: the second gets a conflict. A device's
position in the hardware file chooses its slice, so a change of one device leaves the other slices as they are, also when it goes or comes.
Counters that devices share come in slices of their own, as the API wants it since Kubernetes 1.35.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_driver.api.served_versions import API_VERSION
from fake_driver.devices.model import CounterConsumption, Device, Pool, RequestPolicy, Scalar, Taint, Value, Version

Object = dict[str, Any]
MAX_DEVICES = 128  # in one slice; the API server refuses more
MAX_DEVICES_WITH_TAINTS_OR_COUNTERS = (
    64  # where one of them has taints, draws from counters, or has an attribute that is a list
)
MAX_COUNTER_SETS = 8
_LONGEST_NAME = 253


@dataclass(frozen=True)
class Owner:
    """The object that slices belong to, and with which they go: a node, or for slices of the network the driver's DeviceClass."""

    name: str
    uid: str
    api_version: str = "v1"
    kind: str = "Node"

    @property
    def references(self) -> list[Object]:
        """As slices say it; nothing where there is no owner."""
        said = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }
        return [said] if self.uid else []


@dataclass(frozen=True)
class Layout:
    """What keeps devices where they are: all devices of the hardware file, also those that are unplugged, and the slices that exist.

    Where the second half of a slice exists, the slice stays cut in two. The API server remembers that for all processes of the driver.
    """

    base: Sequence[Device] = ()
    existing: Collection[str] = ()


@dataclass(frozen=True)
class _Home:
    """What all slices of a pool say of where it is, and how their names end."""

    driver: str
    pool: str
    reach: Mapping[str, Any]
    prefix: str = ""
    owners: list[Object] = field(default_factory=list)

    def name(self, start: str) -> str:
        """Names start with the index, because schedulers look at slices in the order of their names."""
        start = f"{self.prefix}{start}-{self.driver}"
        name = f"{start}-{self.pool}"
        if len(name) > _LONGEST_NAME:
            name = f"{start}-{hashlib.sha256(self.pool.encode()).hexdigest()}"
        return name


def for_node(driver: str, node: Owner, devices: Sequence[Device], layout: Layout | None = None) -> list[Object]:
    """The slices of this node's pool, all but the generation. A node without devices has one empty slice: the driver is alive."""
    home = _Home(driver, node.name, {"nodeName": node.name}, owners=node.references)
    return _slices(home, devices, layout or Layout())


def for_network(driver: str, pools: Iterable[Pool], owner: Owner | None = None) -> list[Object]:
    """The slices of pools that belong to no node."""
    found: list[Object] = []
    for pool in pools:
        reach = {"nodeSelector": pool.node_selector} if pool.node_selector else {"allNodes": True}
        home = _Home(driver, pool.name, reach, "pool-", owner.references if owner else [])
        found += _slices(home, pool.devices, Layout())
    return found


def pool_name(slice_: Object) -> str:
    """Return the name of the pool that a slice belongs to."""
    return str(slice_["spec"]["pool"]["name"])


def with_devices(slice_: Object, devices: list[Object]) -> Object:
    """Return the slice with these devices. The API server stores no empty list, so an empty one is left out."""
    others = {name: value for name, value in slice_["spec"].items() if name != "devices"}
    return {**slice_, "spec": {**others, **({"devices": devices} if devices else {})}}


def _slices(home: _Home, devices: Sequence[Device], layout: Layout) -> list[Object]:
    # Counters of a device that is unplugged stay: nobody draws from them, and their slice need not be written.
    counters = _counters((*layout.base, *devices))
    contents = {
        **{_start(index): _devices(block) for index, block in _blocks(home, devices, layout)},
        **{f"counters-{_start(index)}": {"sharedCounters": sets} for index, sets in enumerate(counters)},
    }
    parts: Mapping[str, Object] = contents or {_start(0): {}}
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {
                "name": home.name(start),
                **({"ownerReferences": home.owners} if home.owners else {}),
            },
            "spec": {
                "driver": home.driver,
                **home.reach,
                "pool": {"name": home.pool, "resourceSliceCount": len(parts)},
                **content,
            },
        }
        for start, content in parts.items()
    ]


def _start(index: int) -> str:
    return f"{index:05x}"


def _devices(block: Iterable[Device | None]) -> Object:
    """What a slice says of its devices. The API server stores no empty list, so we send none: what is stored shall be what was sent."""
    there = [_device(each) for each in block if each]
    return {"devices": there} if there else {}


def _blocks(home: _Home, devices: Sequence[Device], layout: Layout) -> Iterator[tuple[int, Sequence[Device | None]]]:
    """The layout of each slice and its index, which counts by 64. A slice is cut in two when it has a demanding device, and stays so."""
    seats = _seats(devices, layout.base)
    for start in range(0, len(seats), MAX_DEVICES):
        block = seats[start : start + MAX_DEVICES]
        second = home.name(_start(start // MAX_DEVICES_WITH_TAINTS_OR_COUNTERS + 1))
        is_cut = second in layout.existing or any(each and _demanding(each) for each in block)
        size = MAX_DEVICES_WITH_TAINTS_OR_COUNTERS if is_cut else MAX_DEVICES
        for inner in range(0, len(block), size):
            yield (start + inner) // MAX_DEVICES_WITH_TAINTS_OR_COUNTERS, block[inner : inner + size]


def _seats(devices: Sequence[Device], base: Sequence[Device]) -> list[Device | None]:
    """The devices, each at its place in the file; None where one is missing. Who has no place there comes last."""
    free = {device.name: place for place, device in enumerate(base)}
    seats: list[Device | None] = [None] * len(base)
    for device in devices:
        place = free.pop(device.name, None)
        if place is None:
            seats.append(device)
        else:
            seats[place] = device
    return seats


def _demanding(device: Device) -> bool:
    return bool(
        device.taints
        or device.consumes_counters
        or any(isinstance(value, tuple) for value in device.attributes.values())
    )


def _counters(devices: Sequence[Device]) -> list[list[Object]]:
    """All sets of counters that the devices draw from, in the parts that fit into slices."""
    draws: dict[str, CounterConsumption] = {
        draw.counter_set: draw for device in devices for draw in device.consumes_counters
    }
    sets = [{"name": name, "counters": _values(draw.available)} for name, draw in draws.items()]
    return [sets[start : start + MAX_COUNTER_SETS] for start in range(0, len(sets), MAX_COUNTER_SETS)]


def _device(device: Device) -> Object:
    attributes = {name: attribute_value(value) for name, value in device.attributes.items()}
    content: Object = {"name": device.name, "attributes": attributes}
    if device.capacity:
        content["capacity"] = {
            name: {"value": value, **_policy(device.policies.get(name))} for name, value in device.capacity.items()
        }
    if device.consumes_counters:
        content["consumesCounters"] = [
            {"counterSet": draw.counter_set, "counters": _values(draw.counters)} for draw in device.consumes_counters
        ]
    if device.taints:
        content["taints"] = [_taint(taint) for taint in device.taints]
    if device.shared:
        content["allowMultipleAllocations"] = True
    return {**content, **_binding(device)}


def _binding(device: Device) -> Object:
    found = device.binding
    if not found:
        return {}
    fields = {
        "bindsToNode": found.binds_to_node,
        "bindingConditions": list(found.conditions),
        "bindingFailureConditions": list(found.failure_conditions),
    }
    return {key: value for key, value in fields.items() if value}


def _taint(taint: Taint) -> Object:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _policy(policy: RequestPolicy | None) -> Object:
    if not policy:
        return {}
    bounds = {"min": policy.minimum, "max": policy.maximum, "step": policy.step}
    content: Object = {"default": policy.default}
    if policy.valid_values:
        content["validValues"] = list(policy.valid_values)
    if policy.minimum:
        content["validRange"] = {key: value for key, value in bounds.items() if value}
    return {"requestPolicy": content}


def _values(amounts: Mapping[str, str]) -> Object:
    return {name: {"value": value} for name, value in amounts.items()}


def attribute_value(value: Value) -> Object:
    """An attribute's value in the words of the API."""
    if isinstance(value, tuple):
        ((kind, _),) = _scalar(value[0]).items()
        return {f"{kind}s": [inner for each in value for inner in _scalar(each).values()]}
    return _scalar(value)


def _scalar(value: Scalar) -> Object:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version": value.text} if isinstance(value, Version) else {"string": value}
