"""Which version of resource.k8s.io the API server serves, and how its objects become ours: the edge. Inside, all is v1.

v1 and v1beta2 have one shape; v1beta1 puts all that a device has below `basic`. Up to Kubernetes 1.34 a set of counters stands in the
slice of the devices that draw from it; since 1.35 it stands in a slice of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fake_driver.api import PATIENCE, Api, Object, path
from fake_driver.errors import ApiError
from fake_driver.slices import API_VERSION, MOST_DEMANDING_DEVICES

GROUP = "resource.k8s.io"
KNOWN = ("v1", "v1beta2", "v1beta1")
_NEWEST = 99  # a server that does not say its version is taken for a new one
_MOST_COUNTERS_TOGETHER = 32  # in one slice, where counters and devices stand together
_INDEX = re.compile(r"[0-9a-f]{5}(?=-)")


@dataclass(frozen=True)
class Served:
    """The version that we speak, and what else makes a difference."""

    version: str
    counters_apart: bool = True

    def path(self, *words: str) -> str:
        """A URL path in this version of the group."""
        return path("apis", GROUP, self.version, *words)

    def outward(self, slice_: Object) -> Object:
        """A slice as this version wants it."""
        found = {**slice_, "apiVersion": f"{GROUP}/{self.version}"}
        if self.version == "v1beta1" and "devices" in slice_["spec"]:
            found["spec"] = {**slice_["spec"], "devices": [_wrapped(device) for device in slice_["spec"]["devices"]]}
        return found

    def inward(self, slice_: Object) -> Object:
        """A slice of this version as v1 has it."""
        found = {**slice_, "apiVersion": API_VERSION}
        if self.version == "v1beta1" and slice_["spec"].get("devices"):
            devices = [{"name": device["name"], **(device.get("basic") or {})} for device in slice_["spec"]["devices"]]
            found["spec"] = {**slice_["spec"], "devices": devices}
        return found

    def arranged(self, slices: Sequence[Object]) -> list[Object]:
        """The same devices in the slices that this server wants."""
        if self.counters_apart or not any("sharedCounters" in each["spec"] for each in slices):
            return list(slices)
        pools = dict.fromkeys(each["spec"]["pool"]["name"] for each in slices)
        return [
            arranged
            for pool in pools
            for arranged in _together([s for s in slices if s["spec"]["pool"]["name"] == pool])
        ]


def served(api: Api) -> Served:
    """What this server has."""
    return Served(newest(api), _minor(api.get("/version")) >= 35)


def newest(api: Api, patience: float = PATIENCE) -> str:
    """The newest version that both sides know."""
    where = path("apis", GROUP)
    there = {each.get("version") for each in api.get(where, patience=patience).get("versions") or []}
    for version in KNOWN:
        if version in there:
            return version
    listed = ", ".join(sorted(map(str, there))) or "nothing"
    raise ApiError(where, 404, f"it serves {listed}, but the driver speaks {', '.join(KNOWN)}")


def _wrapped(device: Object) -> Object:
    return {"name": device["name"], "basic": {name: value for name, value in device.items() if name != "name"}}


def _minor(version: Object) -> int:
    digits = re.match(r"\d+", str(version.get("minor")), re.ASCII)
    return int(digits[0]) if digits else _NEWEST


def _together(pool: list[Object]) -> list[Object]:
    """A pool whose devices stand beside the counters that they draw from."""
    sets = {each["name"]: each for slice_ in pool for each in slice_["spec"].get("sharedCounters") or ()}
    packed = _packed([device for slice_ in pool for device in slice_["spec"].get("devices") or ()], sets)
    return [_filled(pool[0], index, len(packed), devices, sets) for index, devices in enumerate(packed)]


def _packed(devices: list[Object], sets: Mapping[str, Object]) -> list[list[Object]]:
    """As many families in each slice as fit; a family is all devices that draw from the same counters, or one that draws from none."""
    packed: list[list[Object]] = [[]]
    for _, family in itertools.groupby(devices, key=lambda device: _set_of(device) or device["name"]):
        members = list(family)
        together = [*packed[-1], *members]
        counters = sum(len(sets[name]["counters"]) for name in _sets_of(together))
        if packed[-1] and (len(together) > MOST_DEMANDING_DEVICES or counters > _MOST_COUNTERS_TOGETHER):
            packed.append(members)
        else:
            packed[-1] = together
    return packed


def _filled(like: Object, index: int, count: int, devices: list[Object], sets: Mapping[str, Object]) -> Object:
    name = _INDEX.sub(f"{index:05x}", like["metadata"]["name"], count=1)
    kept = {key: value for key, value in like["spec"].items() if key not in {"devices", "sharedCounters"}}
    shared = [sets[name] for name in _sets_of(devices)]
    content: Object = {**({"devices": devices} if devices else {}), **({"sharedCounters": shared} if shared else {})}
    pool = {**kept["pool"], "resourceSliceCount": count}
    return {**like, "metadata": {**like["metadata"], "name": name}, "spec": {**kept, "pool": pool, **content}}


def _set_of(device: Object) -> str:
    draws = device.get("consumesCounters") or [{}]
    return str(draws[0].get("counterSet", ""))


def _sets_of(devices: list[Object]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(_set_of, devices))))
