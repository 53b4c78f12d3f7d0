"""The word `kubelets`: what the kubelet of a node tells of claims and devices, and the CDI files beside it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc
import yaml

from testbed.drivers.slices import Device
from testbed.errors import TestbedError, WaitTimeout
from testbed.kubelet.stubs import podresources_v1_pb2, podresources_v1_pb2_grpc
from testbed.providers.base import Cluster, Node, ReachesSockets
from testbed.vocabulary import asking, budgets
from testbed.vocabulary.evidence import CDI_FOLDERS
from testbed.vocabulary.observing import Diagnosis, failure
from testbed.vocabulary.pods import Pod
from testbed.vocabulary.world import World
from testbed.waiting import NotYet, eventually

_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
# The files that a runtime reads, of folders that are there; what is just being written has another ending.
_LIST = 'for folder; do for each in "$folder"/*.json "$folder"/*.yaml; do [ ! -f "$each" ] || echo "$each"; done; done'
# Files of claims that end meanwhile are gone; any other trouble is one.
_READ = 'cat "$1" || [ ! -e "$1" ]'
_ANSWER = 10.0
_IN_USE = "dra_resource_claims_in_use"
_CALLS = "dra_grpc_operations_duration_seconds_count"
_NOT_TIDY = Diagnosis("the driver has not unprepared the claim, or the kubelet was not told so")


@dataclass(frozen=True)
class Kubelets:
    """The kubelets of the cluster."""

    world: World

    def claims_listed(self, pod: Pod) -> dict[str, frozenset[Device]]:
        """The devices of each claim that a pod's containers have, as PodResources List says it; {} for a pod that it does not know."""
        return self._listed(pod, pod.node)

    def claims_of(self, pod: Pod) -> dict[str, frozenset[Device]]:
        """The same, as PodResources Get says it of one pod."""
        return _devices(self._get(pod))

    def cdi_ids(self, pod: Pod) -> frozenset[str]:
        """The CDI ids of all devices of a pod's claims."""
        return frozenset(
            cdi.name
            for container in self._get(pod).containers
            for claim in container.dynamic_resources
            for device in claim.claim_resources
            for cdi in device.cdi_devices
        )

    def should_forget(self, pod: Pod, node: str) -> None:
        """Wait until a pod that was on a node has no claims any more for its kubelet."""

        def forgotten() -> None:
            if left := self._listed(pod, node):
                raise NotYet(f"it lists {', '.join(sorted(left))}")

        self._eventually(forgotten, f"the kubelet of {node} to list no claim of pod {pod.name}")

    def claims_in_use(self, node: str) -> int:
        """How many claims of the driver are prepared on a node, as the kubelet's metrics say."""
        return int(self._metric(node, _IN_USE, driver_name=self.world.driver_file.driver))

    def should_have_in_use(self, node: str, count: int) -> None:
        """Wait until the kubelet's metrics say that so many claims of the driver are prepared on a node."""

        def counted() -> None:
            if (now := self.claims_in_use(node)) != count:
                raise NotYet(f"there are {now}")

        self._eventually(counted, f"the kubelet of {node} to count {count} claims of {self.world.driver_file.driver}")

    def calls(self, node: str, method: str) -> int:
        """How many calls of a method (NodePrepareResources) the driver has answered well, as the kubelet's metrics say."""
        labels = {"driver_name": self.world.driver_file.driver, "grpc_status_code": "OK"}
        return int(self._metric(node, _CALLS, method_name=f".*/{method}", **labels))

    def cdi_files(self, node: str) -> frozenset[str]:
        """The CDI files of a node."""
        return frozenset(self._shell(node, _LIST, *CDI_FOLDERS).splitlines())

    def cdi_ids_defined(self, node: str) -> frozenset[str]:
        """The CDI ids that the CDI files of a node define."""
        texts = [self._shell(node, _READ, each) for each in sorted(self.cdi_files(node))]
        specs = [yaml.safe_load(text) for text in texts if text]
        return frozenset(f"{spec['kind']}={device['name']}" for spec in specs for device in spec["devices"])

    def should_have_cdi_files(self, node: str, wanted: frozenset[str]) -> None:
        """Wait until a node has these CDI files and no others."""

        def tidy() -> None:
            there = self.cdi_files(node)
            if there != wanted:
                raise NotYet(f"left: {sorted(there - wanted)}, missing: {sorted(wanted - there)}")

        self._eventually(tidy, f"node {node} to have the CDI files that it had before")

    def _eventually(self, check: Callable[[], None], expected: str) -> None:
        try:
            eventually(check, expected, budgets.RELEASED, longest_pause=0.2)
        except WaitTimeout as late:
            raise failure(expected, late.last_seen, late.budget, asking.unless_away(self.world, _NOT_TIDY)) from late

    def _get(self, pod: Pod) -> podresources_v1_pb2.PodResources:
        wanted = podresources_v1_pb2.GetPodResourcesRequest(pod_name=pod.name, pod_namespace=pod.namespace)
        with self._lister(pod.node) as lister:
            found: podresources_v1_pb2.PodResources = lister.Get(wanted, timeout=_ANSWER).pod_resources
        return found

    def _listed(self, pod: Pod, node: str) -> dict[str, frozenset[Device]]:
        with self._lister(node) as lister:
            every = lister.List(podresources_v1_pb2.ListPodResourcesRequest(), timeout=_ANSWER).pod_resources
        meant = (each for each in every if (each.namespace, each.name) == (pod.namespace, pod.name))
        return _devices(next(meant, podresources_v1_pb2.PodResources()))

    @contextlib.contextmanager
    def _lister(self, node: str) -> Iterator[podresources_v1_pb2_grpc.PodResourcesListerStub]:
        cluster = self._cluster
        if not isinstance(cluster, ReachesSockets):
            raise TestbedError(
                f"the sockets of {cluster.name} are out of reach", hint="Capability.DRIVER_SOCKET says so"
            )
        options = [("grpc.default_authority", "localhost")]  # a Go server takes no path of a file for it
        with grpc.insecure_channel(f"unix:{cluster.socket(node, _SOCKET)}", options) as channel:
            try:
                yield podresources_v1_pb2_grpc.PodResourcesListerStub(channel)
            except grpc.RpcError as refused:
                said = refused.details() if isinstance(refused, grpc.Call) else str(refused)
                raise TestbedError(f"the kubelet of {node} does not say what its pods have: {said}") from refused

    def _metric(self, node: str, name: str, **labels: str) -> float:
        text = str(self.world.kube.request("GET", f"/api/v1/nodes/{node}/proxy/metrics"))
        return value(text, name, **labels)

    def _shell(self, node: str, script: str, *words: str) -> str:
        return self._cluster_node(node).run("sh", "-c", script, "sh", *words).stdout

    def _cluster_node(self, name: str) -> Node:
        return next(each for each in self._cluster.nodes() if each.name == name)

    @property
    def _cluster(self) -> Cluster:
        if self.world.cluster is None:
            raise TestbedError("these words know no cluster", hint="a requirement that uses them needs a Capability")
        return self.world.cluster


def value(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples whose labels match these expressions; 0 where there is none."""
    total = 0.0
    for given, said in re.findall(rf"^{re.escape(name)}{{(.*)}} (\S+)$", text, re.MULTILINE):
        has = dict(re.findall(r'(\w+)="([^"]*)"', given))
        if all(re.fullmatch(pattern, has.get(label, "")) for label, pattern in labels.items()):
            total += float(said)
    return total


def _devices(pod: podresources_v1_pb2.PodResources) -> dict[str, frozenset[Device]]:
    found: dict[str, set[Device]] = {}
    for container in pod.containers:
        for claim in container.dynamic_resources:
            devices = (Device(each.driver_name, each.pool_name, each.device_name) for each in claim.claim_resources)
            found.setdefault(claim.claim_name, set()).update(devices)
    return {name: frozenset(devices) for name, devices in found.items()}
