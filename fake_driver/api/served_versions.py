"""The version of resource.k8s.io that the API server serves, and the conversion of slices. All other modules use v1 objects.

v1 and v1beta2 have the same fields; v1beta1 nests the fields of a device below `basic`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fake_driver.api.client import REQUEST_TIMEOUT, ApiClient, Object, url_path
from fake_driver.errors import ApiError

GROUP = "resource.k8s.io"
API_VERSION = f"{GROUP}/v1"  # of objects in the driver
SUPPORTED = ("v1", "v1beta2", "v1beta1")
_NEWEST = 99  # assumed for a server that does not report its version


@dataclass(frozen=True)
class ServedVersion:
    """The API version to use, and whether shared counters must be in slices without devices, as API servers since 1.35 require."""

    version: str
    separate_counter_slices: bool = True

    def path(self, *segments: str) -> str:
        """Return a URL path in this version of the group."""
        return url_path("apis", GROUP, self.version, *segments)

    def from_v1(self, slice_: Object) -> Object:
        """Convert a slice from v1 to this version."""
        found = {**slice_, "apiVersion": f"{GROUP}/{self.version}"}
        if self.version == "v1beta1" and "devices" in slice_["spec"]:
            found["spec"] = {**slice_["spec"], "devices": [_nested(device) for device in slice_["spec"]["devices"]]}
        return found

    def to_v1(self, slice_: Object) -> Object:
        """Convert a slice from this version to v1."""
        found = {**slice_, "apiVersion": API_VERSION}
        if self.version == "v1beta1" and slice_["spec"].get("devices"):
            devices = [{"name": device["name"], **(device.get("basic") or {})} for device in slice_["spec"]["devices"]]
            found["spec"] = {**slice_["spec"], "devices": devices}
        return found


def discover(api: ApiClient) -> ServedVersion:
    """Return the version to use with this server."""
    return ServedVersion(newest_version(api), _minor(api.get("/version")) >= 35)


def newest_version(api: ApiClient, timeout: float = REQUEST_TIMEOUT) -> str:
    """Return the newest version that both the server and the driver support; raise ApiError if there is none."""
    path = url_path("apis", GROUP)
    served = {each.get("version") for each in api.get(path, timeout=timeout).get("versions") or []}
    for version in SUPPORTED:
        if version in served:
            return version
    listed = ", ".join(sorted(map(str, served))) or "nothing"
    raise ApiError(path, 404, f"the server serves {listed}, but the driver supports {', '.join(SUPPORTED)}")


def _nested(device: Object) -> Object:
    return {"name": device["name"], "basic": {name: value for name, value in device.items() if name != "name"}}


def _minor(version: Object) -> int:
    digits = re.match(r"\d+", str(version.get("minor")), re.ASCII)
    return int(digits[0]) if digits else _NEWEST
