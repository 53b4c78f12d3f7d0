"""Reads the version of an API server, the feature gates that are on, and the versions of resource.k8s.io that it serves.

Used by providers, `status` and the selection of requirements. Gates are read from the server's metrics. Users without access to them still
learn some gates from dry runs: the server drops fields whose gate is off.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import ApiError, UsageError
from testbed.kube.client import Kube, Object

DRA = "resource.k8s.io"
# All gates of requirements. Those that cannot be read are assumed to have the default of their Kubernetes version.
REQUIREMENT_GATES = frozenset(
    {
        *(
            "DRAAdminAccess",
            "DRAConsumableCapacity",
            "DRADeviceBindingConditions",
            "DRADeviceTaintRules",
            "DRADeviceTaints",
        ),
        *("DRAExtendedResource", "DRAPartitionableDevices", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"),
        *("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
        *("ResourceHealthStatus", "ResourceHealthStatusMessage"),
    }
)
_ENABLED = re.compile(r"^kubernetes_feature_enabled\{(?P<labels>[^}]*)\}\s+(?P<value>[01])(?:\.0)?$", re.MULTILINE)
_NAME = re.compile(r'name="(?P<name>[^"]+)"')
_NOT_READABLE = (401, 403, 404)


@dataclass(frozen=True)
class Features:
    """What an API server reports. `gates` is None if the user may not read metrics."""

    version: str
    gates: Mapping[str, bool] | None
    resource_versions: tuple[str, ...]


def read(kube: Kube) -> Features:
    """Read everything from the API server."""
    return Features(version(kube), gates(kube), resource_versions(kube))


def version(kube: Kube) -> str:
    """Return the server's version, such as 1.37.1."""
    return str(kube.request("GET", "/version")["gitVersion"]).removeprefix("v")


def gates(kube: Kube) -> Mapping[str, bool] | None:
    """Return the API server's feature gates from its metrics, or None if the user may not read them."""
    try:
        text = str(kube.request("GET", "/metrics", timeout=30))
    except ApiError as refused:
        if refused.status in _NOT_READABLE:
            return None
        raise
    return parse_gates(text)


def visible_gates(kube: Kube, version: str, *, dry_runs: bool) -> dict[str, bool]:
    """Return the gates that existing objects, served kinds and, if allowed, dry runs reveal. Nothing is created."""
    found = _gates_of_dry_runs(kube, version) if dry_runs else {}
    return {**dict.fromkeys(_gates_of_objects(kube), True), **_gates_of_kinds(kube), **found}


def parse_gates(metrics: str) -> dict[str, bool]:
    """Return the gates in a component's metrics."""
    found = ((_NAME.search(line["labels"]), line["value"] == "1") for line in _ENABLED.finditer(metrics))
    return {name["name"]: is_on for name, is_on in found if name}


def resource_versions(kube: Kube) -> tuple[str, ...]:
    """Return the served versions of resource.k8s.io, the preferred one first; none if the API is not served."""
    for group in kube.request("GET", "/apis")["groups"]:
        if group["name"] == DRA:
            preferred = str(group["preferredVersion"]["version"])
            return tuple(dict.fromkeys([preferred, *(str(each["version"]) for each in group["versions"])]))
    return ()


@dataclass(frozen=True)
class _DryRun:
    """An object to create in a dry run, and the fields that the server drops if their gate is off."""

    kind: str
    spec: Object
    fields: Mapping[str, tuple[str | int, ...]]
    since: tuple[int, int] = (1, 34)  # earlier servers keep the fields even if the gate is off

    def run(self, kube: Kube) -> dict[str, bool]:
        """Return the gates that the dry run reveals; none if the server refuses the object."""
        name = {"name": f"dra-testbed-dry-run-{secrets.token_hex(4)}"}
        namespace = {"namespace": "default"} if self.kind == "ResourceClaim" else {}
        manifest = {"apiVersion": f"{DRA}/v1", "kind": self.kind, "metadata": {**name, **namespace}, "spec": self.spec}
        try:
            spec = kube.create(manifest, dry_run=True).get("spec")
        except UsageError:
            return {}
        except ApiError as refused:
            if not refused.status:  # the server did not answer
                raise
            return {}
        return {gate: bool(_at(spec, path)) for gate, path in self.fields.items()}


_REQUEST = ("devices", "requests", 0, "exactly")
_PREFIX = "dra-testbed.example"
_SLICE = {"driver": _PREFIX, "pool": {"name": "tries", "generation": 1, "resourceSliceCount": 1}, "allNodes": True}
_DRY_RUNS = (
    _DryRun(
        "DeviceClass", {"extendedResourceName": f"{_PREFIX}/tries"}, {"DRAExtendedResource": ("extendedResourceName",)}
    ),
    _DryRun(
        "ResourceClaim",
        {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": _PREFIX, "capacity": {"requests": {"c": "1"}}}}
                ]
            }
        },
        {"DRAConsumableCapacity": (*_REQUEST, "capacity")},
    ),
    _DryRun(
        "ResourceClaim",
        {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": _PREFIX, "tolerations": [{"operator": "Exists"}]}}
                ]
            }
        },
        {"DRADeviceTaints": (*_REQUEST, "tolerations")},
        since=(1, 35),
    ),
    # Only users who may install drivers may create these.
    _DryRun(
        "ResourceSlice",
        {**_SLICE, "sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}]},
        {"DRAPartitionableDevices": ("sharedCounters",)},
    ),
    _DryRun(
        "ResourceSlice",
        {**_SLICE, "devices": [{"name": "d", "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}]},
        {"DRADeviceBindingConditions": ("devices", 0, "bindingConditions")},
    ),
)


def _gates_of_dry_runs(kube: Kube, version: str) -> dict[str, bool]:
    major, minor = version.removeprefix("v").split(".")[:2]
    now = int(major), int(re.sub(r"\D.*", "", minor))
    return {gate: is_on for each in _DRY_RUNS if each.since <= now for gate, is_on in each.run(kube).items()}


def _gates_of_kinds(kube: Kube) -> dict[str, bool]:
    """Return the gates of kinds that are not served, which are off. A served kind does not reveal its gate."""
    try:
        kube.list(f"{DRA}/v1", "DeviceTaintRule", limit="1")
    except UsageError:
        return {"DRADeviceTaintRules": False}
    except ApiError as refused:
        if not refused.status:
            raise
    return {}


def _gates_of_objects(kube: Kube) -> Iterator[str]:
    """Yield the gates that existing objects need."""
    for each in _listed(kube, "ResourceSlice"):
        devices = each["spec"].get("devices") or ()
        if each["spec"].get("sharedCounters") or any(device.get("consumesCounters") for device in devices):
            yield "DRAPartitionableDevices"
        if any(device.get("bindingConditions") for device in devices):
            # The server keeps the field only if both are on.
            yield from ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
        if any(device.get("allowMultipleAllocations") for device in devices):
            yield "DRAConsumableCapacity"
        if any(device.get("taints") for device in devices):
            yield "DRADeviceTaints"
    if any((each.get("status") or {}).get("devices") for each in _listed(kube, "ResourceClaim")):
        yield "DRAResourceClaimDeviceStatus"


def _listed(kube: Kube, kind: str) -> list[Object]:
    try:
        return kube.list(f"{DRA}/v1", kind)
    except UsageError:  # the kind is not served
        return []
    except ApiError as refused:
        if not refused.status:
            raise
        return []


def _at(content: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return None
    return content
