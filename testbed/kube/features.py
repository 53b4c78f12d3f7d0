"""What an API server is: its version, the feature gates that are really on, the versions of resource.k8s.io that it serves.

Asked of the server itself, for clusters whose configuration is not ours; providers, `status` and whoever selects requirements call it.
Gates stand in its metrics. Who may not read those still sees some of them: a server forgets the fields whose gate is off.
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
# All that a requirement names. Those of them that no look and no trial shows are taken to be as their Kubernetes has them by itself.
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
    """What was found. `gates` is None where it may not be read."""

    version: str
    gates: Mapping[str, bool] | None
    resource_versions: tuple[str, ...]


def read(kube: Kube) -> Features:
    """Ask for all of it."""
    return Features(version(kube), gates(kube), resource_versions(kube))


def version(kube: Kube) -> str:
    """The server's version, like 1.37.1."""
    return str(kube.request("GET", "/version")["gitVersion"]).removeprefix("v")


def gates(kube: Kube) -> Mapping[str, bool] | None:
    """The API server's feature gates as they are, whoever set them; None for users who may not read its metrics."""
    try:
        text = str(kube.request("GET", "/metrics", timeout=30))
    except ApiError as refused:
        if refused.status in _NOT_READABLE:
            return None
        raise
    return parse_gates(text)


def visible_gates(kube: Kube, version: str, *, tries: bool) -> dict[str, bool]:
    """The gates that the API shows to everybody who may look at slices and, where something may be tried, make claims.

    Nothing is made: what is tried is a dry run.
    """
    tried = _gates_of_dry_runs(kube, version) if tries else {}
    return {**dict.fromkeys(_gates_of_objects(kube), True), **_gates_of_kinds(kube), **tried}


def parse_gates(metrics: str) -> dict[str, bool]:
    """The gates in a component's metrics."""
    found = ((_NAME.search(line["labels"]), line["value"] == "1") for line in _ENABLED.finditer(metrics))
    return {name["name"]: is_on for name, is_on in found if name}


def resource_versions(kube: Kube) -> tuple[str, ...]:
    """The versions of resource.k8s.io that are served, the preferred one first; none where there is no such API."""
    for group in kube.request("GET", "/apis")["groups"]:
        if group["name"] == DRA:
            preferred = str(group["preferredVersion"]["version"])
            return tuple(dict.fromkeys([preferred, *(str(each["version"]) for each in group["versions"])]))
    return ()


@dataclass(frozen=True)
class _DryRun:
    """An object that nobody keeps, and the fields in which a gate shows: gone from the answer where it is off."""

    kind: str
    spec: Object
    fields: Mapping[str, tuple[str | int, ...]]
    since: tuple[int, int] = (1, 34)  # the servers before keep the fields whatever the gate is

    def run(self, kube: Kube) -> dict[str, bool]:
        """What it shows; nothing where the server does not want such an object from us."""
        name = {"name": f"dra-testbed-tries-{secrets.token_hex(4)}"}
        home = {"namespace": "default"} if self.kind == "ResourceClaim" else {}
        manifest = {"apiVersion": f"{DRA}/v1", "kind": self.kind, "metadata": {**name, **home}, "spec": self.spec}
        try:
            spec = kube.create(manifest, dry_run=True).get("spec")
        except UsageError:
            return {}
        except ApiError as refused:
            if not refused.status:  # nobody is there
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
    # Only those who install drivers may try these.
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
    """A kind that is not served cannot be on; one that is served may be off all the same."""
    try:
        kube.list(f"{DRA}/v1", "DeviceTaintRule", limit="1")
    except UsageError:
        return {"DRADeviceTaintRules": False}
    except ApiError as refused:
        if not refused.status:
            raise
    return {}


def _gates_of_objects(kube: Kube) -> Iterator[str]:
    """The gates without which what is there already could not be."""
    for each in _listed(kube, "ResourceSlice"):
        devices = each["spec"].get("devices") or ()
        if each["spec"].get("sharedCounters") or any(device.get("consumesCounters") for device in devices):
            yield "DRAPartitionableDevices"
        if any(device.get("bindingConditions") for device in devices):
            yield from (
                "DRADeviceBindingConditions",
                "DRAResourceClaimDeviceStatus",
            )  # a server keeps it with both alone
        if any(device.get("allowMultipleAllocations") for device in devices):
            yield "DRAConsumableCapacity"
        if any(device.get("taints") for device in devices):
            yield "DRADeviceTaints"
    if any((each.get("status") or {}).get("devices") for each in _listed(kube, "ResourceClaim")):
        yield "DRAResourceClaimDeviceStatus"


def _listed(kube: Kube, kind: str) -> list[Object]:
    try:
        return kube.list(f"{DRA}/v1", kind)
    except UsageError:  # it is not served
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
