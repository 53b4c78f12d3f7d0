"""Moves shared counters into the ResourceSlices of the devices that consume them, as API servers before Kubernetes 1.35 require.

Pure; the publisher calls it for these servers. Newer ones want counters in slices without devices.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from fake_driver.publishing.slices import MAX_DEVICES_WITH_TAINTS_OR_COUNTERS, Object

_MAX_COUNTERS = 32  # in one slice that also has devices
_INDEX = re.compile(r"[0-9a-f]{5}(?=-)")


def with_counters_beside_devices(slices: Sequence[Object]) -> list[Object]:
    """Return slices with the same devices, in which each counter set is in the slice of the devices that consume it."""
    if not any("sharedCounters" in each["spec"] for each in slices):
        return list(slices)
    pools = dict.fromkeys(each["spec"]["pool"]["name"] for each in slices)
    return [slice_ for pool in pools for slice_ in _merged([s for s in slices if s["spec"]["pool"]["name"] == pool])]


def _merged(pool: list[Object]) -> list[Object]:
    """Return the slices of one pool with devices and their counters in the same slice."""
    sets = {each["name"]: each for slice_ in pool for each in slice_["spec"].get("sharedCounters") or ()}
    packed = _packed([device for slice_ in pool for device in slice_["spec"].get("devices") or ()], sets)
    return [_filled(pool[0], index, len(packed), devices, sets) for index, devices in enumerate(packed)]


def _packed(devices: list[Object], sets: Mapping[str, Object]) -> list[list[Object]]:
    """Distribute the devices over few slices. Devices that consume the same counters stay together."""
    packed: list[list[Object]] = [[]]
    for _, group in itertools.groupby(devices, key=lambda device: _set_of(device) or device["name"]):
        members = list(group)
        together = [*packed[-1], *members]
        counters = sum(len(sets[name]["counters"]) for name in _sets_of(together))
        if packed[-1] and (len(together) > MAX_DEVICES_WITH_TAINTS_OR_COUNTERS or counters > _MAX_COUNTERS):
            packed.append(members)
        else:
            packed[-1] = together
    return packed


def _filled(template: Object, index: int, count: int, devices: list[Object], sets: Mapping[str, Object]) -> Object:
    name = _INDEX.sub(f"{index:05x}", template["metadata"]["name"], count=1)
    kept = {key: value for key, value in template["spec"].items() if key not in {"devices", "sharedCounters"}}
    shared = [sets[name] for name in _sets_of(devices)]
    content: Object = {**({"devices": devices} if devices else {}), **({"sharedCounters": shared} if shared else {})}
    pool = {**kept["pool"], "resourceSliceCount": count}
    return {**template, "metadata": {**template["metadata"], "name": name}, "spec": {**kept, "pool": pool, **content}}


def _set_of(device: Object) -> str:
    consumed = device.get("consumesCounters") or [{}]
    return str(consumed[0].get("counterSet", ""))


def _sets_of(devices: list[Object]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(_set_of, devices))))
