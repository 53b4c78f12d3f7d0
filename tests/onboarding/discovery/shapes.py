"""Facts of drivers of several shapes, as they were recorded in clusters, shortened."""

from __future__ import annotations

from typing import Any

from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import DriverPods, PublishedDevice, Sample

GPU, CPU, NIC = "gpu.example.com", "dra.cpu", "dra.net"
UID = "8f5f3f0e-5a0c-4d0c-9d3c-0f6a7c1d2e3f"


def device(driver: str, node: str, name: str, capacity: str = "", **attributes: Any) -> PublishedDevice:
    kinds = {str: "string", bool: "bool", int: "int"}
    content: dict[str, Any] = {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
    }
    if capacity:
        content["capacity"] = {"memory": {"value": capacity}}
    return PublishedDevice(driver, node, node, content)


def changed(found: PublishedDevice, **fields: Any) -> PublishedDevice:
    return PublishedDevice(found.driver, found.pool, found.node, {**found.content, **fields})


def sample(*devices: PublishedDevice, without: bool = False, **contents: Any) -> Sample:
    """Return a sample of a container with these devices; it also has what every container has."""
    given: dict[str, Any] = {
        "variables": {"PATH": "/bin", **contents.get("variables", {})},
        "mounts": frozenset({"/", "/dev", *contents.get("mounts", ())}),
        "device_nodes": frozenset({"/dev/null", *contents.get("device_nodes", ())}),
        "interfaces": frozenset({"lo", "eth0", *contents.get("interfaces", ())}),
        "cpus": frozenset({f"Cpus_allowed_list:\t{contents.get('cpus', '0-7')}", "Mems_allowed_list:\t0"}),
    }
    return Sample("node-1", 0 if without else len(devices), Contents(**given), devices, "" if without else UID)


PLAIN = sample(without=True)
NODES = ("node-1", "node-2")
GPUS = [
    device(GPU, node, f"gpu-{number}", "80Gi", uuid=f"gpu-{node}-{number}", model="LATEST", index=number)
    for node in NODES
    for number in range(3)
]
# Identical servers have CPUs of the same numbers.
CPUS = [
    device(CPU, node, f"cpudev{number:03}", coreID=number, cpuID=number, numaNodeID=number // 2, coreType="standard")
    for node in NODES
    for number in range(4)
]
NICS = [
    device(NIC, node, f"nic{number}", ifName=f"nic{number}", mac=f"02:00:00:00:{place:02}:{number:02}", type="ifb")
    for place, node in enumerate(NODES)
    for number in range(3)
]


def device_class(name: str, expression: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def daemonset(
    name: str, *, folder: str = "/var/lib/kubelet/plugins", writes_slices: bool = True, **pod: Any
) -> DriverPods:
    volumes = [{"name": "plugins", "hostPath": {"path": folder}}, *pod.pop("volumes", ())]
    containers = [
        {"name": "sidecar", "image": "sidecar:1"},
        {
            "name": "plugin",
            "image": f"example.com/{name}:v1.4.2",
            "volumeMounts": [{"name": "plugins", "mountPath": folder}],
        },
    ]
    spec = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"spec": {"volumes": volumes, "containers": containers, **pod}},
    }
    return DriverPods({"metadata": {"name": name, "namespace": f"{name}-system"}, "spec": spec}, (), writes_slices)
