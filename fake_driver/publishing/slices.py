"""The wanted ResourceSlices, as resource.k8s.io/v1 objects. Pure; the planner compares them with the stored ones.

The names of slices are fixed, so two processes of one driver never publish a device twice: the second one gets a conflict. A device's
position in the hardware file selects its slice, so adding, removing or changing a device leaves the other slices unchanged.
Shared counters are in slices without devices, as the API requires since Kubernetes 1.35.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_driver.api.served_versions import API_VERSION
from fake_driver.devices.model import CounterConsumption, Device, Pool, RequestPolicy, Scalar, Taint, Value, Version

Object = dict[str, Any]
MAX_DEVICES = 128  # in one slice
MAX_DEVICES_WITH_TAINTS_OR_COUNTERS = 64  # also if a device has a list attribute
MAX_COUNTER_SETS = 8
_MAX_NAME = 253


@dataclass(frozen=True)
class Owner:
    """The object that owns slices: the node, or for slices of the network the driver's DeviceClass. Without a UID there is no owner."""

    name: str
    uid: str
    api_version: str = "v1"
    kind: str = "Node"

    @property
    def references(self) -> list[Object]:
        """The owner references of a slice; empty without an owner."""
        reference = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }
        return [reference] if self.uid else []


@dataclass(frozen=True)
class Layout:
    """What determines the slice of each device: all devices of the hardware file, including unplugged ones, and the existing slices.

    A slice that was split once stays split. The existing slices record that for all processes of the driver.
    """

    base: Sequence[Device] = ()
    existing: Collection[str] = ()


@dataclass(frozen=True)
class _SliceTemplate:
    """What all slices of one pool have in common."""

    driver: str
    pool: str
    node_selection: Mapping[str, Any]
    prefix: str = ""
    owners: list[Object] = field(default_factory=list)

    def name(self, index: str) -> str:
        """Return the name of a slice. It begins with the index, because schedulers process slices in the order of their names."""
        start = f"{self.prefix}{index}-{self.driver}"
        name = f"{start}-{self.pool}"
        if len(name) > _MAX_NAME:
            name = f"{start}-{hashlib.sha256(self.pool.encode()).hexdigest()}"
        return name


def for_node(driver: str, node: Owner, devices: Sequence[Device], layout: Layout | None = None) -> list[Object]:
    """Return the slices of a node's pool, without a generation. A node without devices has one empty slice, as a sign of life."""
    template = _SliceTemplate(driver, node.name, {"nodeName": node.name}, owners=node.references)
    return _slices(template, devices, layout or Layout())


def for_network(driver: str, pools: Iterable[Pool], owner: Owner | None = None) -> list[Object]:
    """Return the slices of the pools that belong to no node."""
    found: list[Object] = []
    for pool in pools:
        node_selection = {"nodeSelector": pool.node_selector} if pool.node_selector else {"allNodes": True}
        template = _SliceTemplate(driver, pool.name, node_selection, "pool-", owner.references if owner else [])
        found += _slices(template, pool.devices, Layout())
    return found


def pool_name(slice_: Object) -> str:
    """Return the name of the pool that a slice belongs to."""
    return str(slice_["spec"]["pool"]["name"])


def with_devices(slice_: Object, devices: list[Object]) -> Object:
    """Return the slice with these devices. The API server stores no empty list, so an empty one is left out."""
    others = {name: value for name, value in slice_["spec"].items() if name != "devices"}
    return {**slice_, "spec": {**others, **({"devices": devices} if devices else {})}}


def _slices(template: _SliceTemplate, devices: Sequence[Device], layout: Layout) -> list[Object]:
    # The counters of an unplugged device stay, so that unplugging a device changes only one slice.
    counters = _counters((*layout.base, *devices))
    contents = {
        **{_index(index): _devices(block) for index, block in _blocks(template, devices, layout)},
        **{f"counters-{_index(index)}": {"sharedCounters": sets} for index, sets in enumerate(counters)},
    }
    by_index: Mapping[str, Object] = contents or {_index(0): {}}
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {
                "name": template.name(index),
                **({"ownerReferences": template.owners} if template.owners else {}),
            },
            "spec": {
                "driver": template.driver,
                **template.node_selection,
                "pool": {"name": template.pool, "resourceSliceCount": len(by_index)},
                **content,
            },
        }
        for index, content in by_index.items()
    ]


def _index(index: int) -> str:
    return f"{index:05x}"


def _devices(block: Iterable[Device | None]) -> Object:
    """Return the `devices` field of a slice. The API server stores no empty list, so an empty one is left out."""
    devices = [_device(each) for each in block if each]
    return {"devices": devices} if devices else {}


def _blocks(
    template: _SliceTemplate, devices: Sequence[Device], layout: Layout
) -> Iterator[tuple[int, Sequence[Device | None]]]:
    """Yield the index, which counts by 64, and the device positions of each slice.

    A slice is split in two when a device needs the lower limit, and stays split.
    """
    positions = _positions(devices, layout.base)
    for start in range(0, len(positions), MAX_DEVICES):
        block = positions[start : start + MAX_DEVICES]
        second_half = template.name(_index(start // MAX_DEVICES_WITH_TAINTS_OR_COUNTERS + 1))
        is_split = second_half in layout.existing or any(each and _needs_lower_limit(each) for each in block)
        size = MAX_DEVICES_WITH_TAINTS_OR_COUNTERS if is_split else MAX_DEVICES
        for inner in range(0, len(block), size):
            yield (start + inner) // MAX_DEVICES_WITH_TAINTS_OR_COUNTERS, block[inner : inner + size]


def _positions(devices: Sequence[Device], base: Sequence[Device]) -> list[Device | None]:
    """Return the devices at their positions in the hardware file, with None for missing ones; devices that are not in it come last."""
    free = {device.name: position for position, device in enumerate(base)}
    positions: list[Device | None] = [None] * len(base)
    for device in devices:
        position = free.pop(device.name, None)
        if position is None:
            positions.append(device)
        else:
            positions[position] = device
    return positions


def _needs_lower_limit(device: Device) -> bool:
    return bool(
        device.taints
        or device.consumes_counters
        or any(isinstance(value, tuple) for value in device.attributes.values())
    )


def _counters(devices: Sequence[Device]) -> list[list[Object]]:
    """Return the counter sets that the devices consume, in groups that fit into a slice."""
    consumed: dict[str, CounterConsumption] = {
        each.counter_set: each for device in devices for each in device.consumes_counters
    }
    sets = [{"name": name, "counters": _values(each.available)} for name, each in consumed.items()]
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
            {"counterSet": each.counter_set, "counters": _values(each.counters)} for each in device.consumes_counters
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
    """Return the API representation of an attribute value."""
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
