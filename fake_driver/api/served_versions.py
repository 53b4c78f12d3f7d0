"""The version of resource.k8s.io that the API server serves, and the conversion from and to it. Everywhere else, objects are v1.

v1 and v1beta2 have the same shape; v1beta1 nests the fields of a device below `basic`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fake_driver.api.client import REQUEST_TIMEOUT, ApiClient, Object, url_path
from fake_driver.errors import ApiError

GROUP = "resource.k8s.io"
API_VERSION = f"{GROUP}/v1"  # of objects inside the driver
SUPPORTED = ("v1", "v1beta2", "v1beta1")
_NEWEST = 99  # a server that does not say its version is taken for a new one


@dataclass(frozen=True)
class ServedVersion:
    """The version that the driver uses, and where the API server wants shared counters: since 1.35 in slices of their own."""

    version: str
    separate_counter_slices: bool = True

    def path(self, *words: str) -> str:
        """A URL path in this version of the group."""
        return url_path("apis", GROUP, self.version, *words)

    def from_v1(self, slice_: Object) -> Object:
        """A slice as this version wants it."""
        found = {**slice_, "apiVersion": f"{GROUP}/{self.version}"}
        if self.version == "v1beta1" and "devices" in slice_["spec"]:
            found["spec"] = {**slice_["spec"], "devices": [_wrapped(device) for device in slice_["spec"]["devices"]]}
        return found

    def to_v1(self, slice_: Object) -> Object:
        """A slice of this version as v1 has it."""
        found = {**slice_, "apiVersion": API_VERSION}
        if self.version == "v1beta1" and slice_["spec"].get("devices"):
            devices = [{"name": device["name"], **(device.get("basic") or {})} for device in slice_["spec"]["devices"]]
            found["spec"] = {**slice_["spec"], "devices": devices}
        return found


def discover(api: ApiClient) -> ServedVersion:
    """What this server has."""
    return ServedVersion(newest_version(api), _minor(api.get("/version")) >= 35)


def newest_version(api: ApiClient, timeout: float = REQUEST_TIMEOUT) -> str:
    """The newest version that both sides know."""
    where = url_path("apis", GROUP)
    there = {each.get("version") for each in api.get(where, timeout=timeout).get("versions") or []}
    for version in SUPPORTED:
        if version in there:
            return version
    listed = ", ".join(sorted(map(str, there))) or "nothing"
    raise ApiError(where, 404, f"it serves {listed}, but the driver speaks {', '.join(SUPPORTED)}")


def _wrapped(device: Object) -> Object:
    return {"name": device["name"], "basic": {name: value for name, value in device.items() if name != "name"}}


def _minor(version: Object) -> int:
    digits = re.match(r"\d+", str(version.get("minor")), re.ASCII)
    return int(digits[0]) if digits else _NEWEST
