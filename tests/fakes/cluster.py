"""A testbed in memory on which our suites pass, or fail with a fault: FakeKube plus controllers, scheduler and kubelets.

Tests of the plugin and of `run` replace `bringup.attach` by `make`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed import folders
from testbed.kube.client import Object
from testbed.kube.ownership import Owner
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.providers.base import Capability, Component
from tests.fakes.kube import FakeKube

NODES = ("node-1", "node-2")
DRIVER = "gpu.dra-testbed.example"
DEVICES_PER_NODE = 4
OWNER = Owner("fake", "0123456789ab")


@dataclass(frozen=True)
class FakeCluster:
    name: str = "fake"
    kubeconfig: Path = Path("kubeconfig")
    capabilities: frozenset[Capability] = frozenset({Capability.MAKE_OBJECTS})
    dead: list[str] = field(default_factory=list)  # components that do not run
    restarted: list[str] = field(default_factory=list)

    def components(self) -> list[Component]:
        return [Component(name, None, alive=False) for name in self.dead]

    def restart_control_plane(self, component: str) -> None:
        self.restarted.append(component)
        self.dead.remove(f"control-plane/{component}")

    def restart_api_server(self) -> None:
        self.restarted.append("kube-apiserver")


@dataclass(frozen=True)
class FakeTestbed:
    name: str
    kube: FakeKube
    config: TestbedConfig
    driver_file: DriverFile
    cluster: FakeCluster = field(default_factory=FakeCluster)
    owner: Owner = OWNER
    folder: Path = Path()  # where the inner pytest runs
    kept_nodes: dict[str, list[str]] = field(default_factory=dict)


def vendor_file() -> str:
    """Return the text of the driver file as a vendor would write it: without an installation, and for the devices of this cluster."""
    text = driver_path().read_text()
    head, tail = text.index("  install:"), text.index("  pods:")
    return (text[:head] + text[tail:]).replace(", match: resource.kubernetes.io/pcieRoot", "")


def driver_path() -> Path:
    return folders.data("manifests") / "drivers" / "fake-gpu.yaml"


def make(fault: str = "", devices: int = DEVICES_PER_NODE) -> FakeTestbed:
    """Make a testbed with a fault.

    Pods: share-one-device, no-env, second-sees-another, no-pods-start, image-missing, pods-never-end. API server: api-goes-away. Nodes:
    node-away, node-short. Slices: slices-missing, count-one-slice-too-many, publish-devices-twice.
    """
    kube = FakeKube(lambda it: World(it, fault).step())
    for node in NODES:
        status = {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1"}}
        kube.put("Node", node, spec={}, status=status)
        _publish(kube, node, devices, fault)
    driver_file = load_driver_file(driver_path())
    for name in (driver_file.device_class, *filter(None, driver_file.classes.model_dump().values())):
        kube.put("DeviceClass", name)
    return FakeTestbed("fake", kube, TestbedConfig(driver=driver_path()), driver_file)


def _publish(kube: FakeKube, node: str, devices: int, fault: str) -> None:
    if fault == "slices-missing":
        return
    twice = fault == "publish-devices-twice"
    count = 2 if twice or fault == "count-one-slice-too-many" else 1
    for name in (f"slice-{node}", *([f"slice-{node}-2"] if twice else [])):
        kube.put("ResourceSlice", name, spec=slice_spec(node, devices, resourceSliceCount=count))


def slice_spec(node: str, devices: int, **pool: int) -> Object:
    return {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1, **pool},
        "devices": [
            {
                "name": f"gpu-{index}",
                "attributes": {"uuid": {"string": f"{node}-uuid-{index}"}, "model": {"string": "F100"}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
            for index in range(devices)
        ],
    }


class World:
    """The controllers, the scheduler and the kubelets; each step does all that is to do."""

    def __init__(self, kube: FakeKube, fault: str) -> None:
        self.kube, self.fault = kube, fault

    def _make_account(self, namespace: str) -> None:
        if ("ServiceAccount", namespace, "default") not in self.kube.objects:
            self.kube.put("ServiceAccount", "default", namespace)

    def step(self) -> None:
        for each in self._all("Namespace"):
            if not each.setdefault("status", {}).get(
                "hasAccount"
            ):  # once: deleting a namespace also deletes its account
                each["status"]["hasAccount"] = True
                self._make_account(each["metadata"]["name"])
        for each in self._all("DaemonSet"):
            self._make_pods(each)
        pods = self._all("Pod")
        if self.fault == "api-goes-away" and pods:
            self.kube.down = True
        stays = ("Running", "Pending") if self.fault == "node-away" else ("Running",)
        for pod in (each for each in pods if each.get("status", {}).get("phase") not in stays):
            self._make_claims(pod)
            if self._schedule(pod):
                self._start(pod)
        self._drop_claims(pods)

    def _make_pods(self, daemonset: Object) -> None:
        template, namespace = daemonset["spec"]["template"], daemonset["metadata"]["namespace"]
        for node in NODES:
            name = f"{daemonset['metadata']['name']}-{node}"
            if ("Pod", namespace, name) not in self.kube.objects:
                spec = {**template["spec"], "wantedNode": node}
                self.kube.put("Pod", name, namespace, spec=spec, metadata={"labels": template["metadata"]["labels"]})

    def _make_claims(self, pod: Object) -> None:
        statuses = []
        for each in pod["spec"].get("resourceClaims", ()):
            if "resourceClaimTemplateName" in each:
                name = f"{pod['metadata']['name']}-{each['name']}"
                statuses.append({"name": each["name"], "resourceClaimName": name})
                if ("ResourceClaim", pod["metadata"]["namespace"], name) not in self.kube.objects:
                    self.kube.put("ResourceClaim", name, pod["metadata"]["namespace"], owner=pod["metadata"]["name"])
        pod.setdefault("status", {})["resourceClaimStatuses"] = statuses

    def _schedule(self, pod: Object) -> bool:
        """Allocate the claims of a pod. Return False if no device is free."""
        node = pod["spec"].setdefault("nodeName", pod["spec"].get("wantedNode", NODES[0]))
        for claim in self._claims(pod).values():
            if "status" not in claim:
                taken = {each["status"]["allocation"]["devices"]["results"][0]["device"] for each in self._held(node)}
                free = next((f"gpu-{i}" for i in range(DEVICES_PER_NODE) if f"gpu-{i}" not in taken), None)
                if free is None:
                    return False
                result = {"request": "cat", "driver": DRIVER, "pool": node, "device": free}
                claim["status"] = {"allocation": {"devices": {"results": [result]}}}
        return True

    def _start(self, pod: Object) -> None:
        if self.fault == "image-missing":
            state: Object = {"waiting": {"reason": "ErrImageNeverPull", "message": "image is not present"}}
        elif self.fault == "node-away":
            state = {"waiting": {"reason": "ContainerCreating"}}
            gone = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
            self.kube.objects["Node", "default", pod["spec"]["nodeName"]]["status"]["conditions"] = [gone]
            self.kube.finalizers[pod["metadata"]["name"]] = 1
        elif self.fault == "node-short":
            state = {"waiting": {"reason": "ContainerCreating"}}
            full = {"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"}
            self.kube.objects["Node", "default", pod["spec"]["nodeName"]]["status"]["conditions"] = [full]
        elif self.fault == "no-pods-start" and pod["spec"].get("resourceClaims"):
            state = {"waiting": {"reason": "ContainerCreating"}}
            self._warn(pod, "Failed to prepare dynamic resources: DRA driver gpu.dra-testbed.example is not registered")
        else:
            state = {"running": {}}
        names = [each["name"] for each in pod["spec"]["containers"]]
        phase = "Running" if "running" in state else "Pending"
        pod["status"] |= {"phase": phase, "containerStatuses": [{"name": name, "state": state} for name in names]}
        if self.fault == "pods-never-end":
            self.kube.finalizers[pod["metadata"]["name"]] = 1
        for container in pod["spec"]["containers"]:
            seen = "".join(f"GPU_DEVICE_GPU_UUID={uuid}\n" for uuid in self._shown(pod, container))
            self.kube.outputs[f"{pod['metadata']['name']}/{container['name']}"] = f"PATH=/bin\n{seen}"

    def _shown(self, pod: Object, container: Object) -> list[str]:
        node, claims = pod["spec"]["nodeName"], self._claims(pod)
        if self.fault == "no-env":
            return []
        if self.fault == "share-one-device":
            return [f"{NODES[0]}-uuid-0"]
        if self.fault == "second-sees-another" and pod["metadata"]["name"] == "second":
            return [f"{node}-uuid-{DEVICES_PER_NODE - 1}"]
        mine = [claims[each["name"]] for each in container.get("resources", {}).get("claims", ())]
        devices = [claim["status"]["allocation"]["devices"]["results"][0]["device"] for claim in mine]
        return [f"{node}-uuid-{device.removeprefix('gpu-')}" for device in devices]

    def _warn(self, pod: Object, message: str) -> None:
        about = {"kind": "Pod", "name": pod["metadata"]["name"]}
        self.kube.put(
            "Event", f"{about['name']}.1", pod["metadata"]["namespace"], type="Warning",
            reason="FailedPrepareDynamicResources", message=message, involvedObject=about,
        )  # fmt: skip

    def _drop_claims(self, pods: list[Object]) -> None:
        alive = {pod["metadata"]["name"] for pod in pods}
        for claim in self._all("ResourceClaim"):
            if claim.get("owner") and claim["owner"] not in alive:
                del self.kube.objects["ResourceClaim", claim["metadata"]["namespace"], claim["metadata"]["name"]]

    def _claims(self, pod: Object) -> dict[str, Object]:
        made = {each["name"]: each["resourceClaimName"] for each in pod["status"]["resourceClaimStatuses"]}
        namespace = pod["metadata"]["namespace"]
        return {
            each["name"]: self.kube.objects[
                "ResourceClaim", namespace, each.get("resourceClaimName") or made[each["name"]]
            ]
            for each in pod["spec"].get("resourceClaims", ())
        }

    def _held(self, node: str) -> list[Any]:
        held = [claim for claim in self._all("ResourceClaim") if "status" in claim]
        return [claim for claim in held if claim["status"]["allocation"]["devices"]["results"][0]["pool"] == node]

    def _all(self, kind: str) -> list[Object]:
        return [each for (k, _, _), each in sorted(self.kube.objects.items()) if k == kind]
