"""The word `kubelets`: what the kubelet of a node tells of claims and devices, and the CDI files beside it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import yaml

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, TestbedError, WaitTimeout
from testbed.kubelet.stubs import podresources_v1_pb2, podresources_v1_pb2_grpc
from testbed.providers.base import Cluster, Node, ReachesSockets
from testbed.vocabulary import budgets
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.world import CDI_FOLDERS, World
from testbed.waiting import NotYet, eventually

_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
# The files that a runtime reads, of folders that are there; what is just being written has another ending.
_LIST = 'for folder; do for each in "$folder"/*.json "$folder"/*.yaml; do [ ! -f "$each" ] || echo "$each"; done; done'
# Files of claims that end meanwhile are gone; any other trouble is one.
_READ = 'cat "$1" || [ ! -e "$1" ]'
_ANSWER = 10.0
_IN_USE = "dra_resource_claims_in_use"
_CALLS = "dra_grpc_operations_duration_seconds_count"
_NOT_TIDY = Diagnosis(
    "the driver has not unprepared the claim, or left its file behind, or the kubelet was not told of the claim's end"
)


class _Unreadable(Exception):
    """A CDI file defines nothing, because no runtime could read it; its text is why."""


@dataclass(frozen=True)
class Kubelets:
    """The kubelets of the cluster."""

    world: World

    def list_claims(self, pod: Pod) -> dict[str, frozenset[Device]]:
        """The devices of each claim that a pod's containers have, as PodResources List says it; {} for a pod that it does not know.

        A claim of another namespace than the pod's is one under another name.
        """
        return self._listed(pod, pod.node)

    def lists(self, pod: Pod) -> bool:
        """Whether PodResources List knows a pod at all."""
        return self._entry(pod, pod.node) is not None

    def get_claims(self, pod: Pod) -> dict[str, frozenset[Device]]:
        """The same, as PodResources Get says it of one pod."""
        return _devices(self._get(pod))

    def list_shares(self, pod: Pod) -> frozenset[str]:
        """The ids of the shares of devices that a pod's containers have, as PodResources List says it."""
        entry = self._entry(pod, pod.node) or podresources_v1_pb2.PodResources()
        return frozenset(device.share_id for device in _allocated(entry) if device.share_id)

    def cdi_ids(self, pod: Pod) -> frozenset[str]:
        """The CDI ids of all devices of a pod's claims."""
        return frozenset(cdi.name for device in _allocated(self._get(pod)) for cdi in device.cdi_devices)

    def should_list_no_claims(self, pod: Pod, node: str) -> None:
        """Wait until a pod that was on a node has no claims any more for its kubelet."""

        def forgotten() -> None:
            if left := self._listed(pod, node):
                raise NotYet(f"it lists {', '.join(sorted(left))}")

        self._eventually(forgotten, f"the kubelet of {node} to list no claim of pod {pod.name}")

    def claims_in_use(self, node: str) -> int:
        """How many claims of the driver are prepared on a node, as the kubelet's metrics say."""
        return int(self._metric(node, _IN_USE, driver_name=self.world.driver_file.driver))

    def should_have_claims_in_use(self, node: str, count: int) -> None:
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

    def defined_cdi_ids(self, node: str) -> frozenset[str]:
        """The CDI ids that the CDI files of a node define. What no runtime could read defines nothing, whosever it is."""
        return frozenset(self._cdi_specs(node)[0])

    def cdi_definitions(self, pod: Pod) -> dict[str, str]:
        """What a container gets with each CDI id of a pod's claims. A driver with ids that mean nothing on its node has failed."""
        ids, (defined, broken) = self.cdi_ids(pod), self._cdi_specs(pod.node)
        missing = sorted(ids - defined.keys())
        if missing:
            unread = "".join(f"\n  not to be read: {path}: {why}" for path, why in sorted(broken.items()))
            raise DriverFailed(f"no CDI file of {pod.node} defines {', '.join(missing)} of pod {pod.name}{unread}")
        return {each: defined[each] for each in sorted(ids)}

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
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, _NOT_TIDY)
            ) from late

    def _get(self, pod: Pod) -> podresources_v1_pb2.PodResources:
        wanted = podresources_v1_pb2.GetPodResourcesRequest(pod_name=pod.name, pod_namespace=pod.namespace)
        with self._lister(pod.node) as lister:
            found: podresources_v1_pb2.PodResources = lister.Get(wanted, timeout=_ANSWER).pod_resources
        return found

    def _listed(self, pod: Pod, node: str) -> dict[str, frozenset[Device]]:
        return _devices(self._entry(pod, node) or podresources_v1_pb2.PodResources())

    def _entry(self, pod: Pod, node: str) -> podresources_v1_pb2.PodResources | None:
        with self._lister(node) as lister:
            every = lister.List(podresources_v1_pb2.ListPodResourcesRequest(), timeout=_ANSWER).pod_resources
        return next((each for each in every if (each.namespace, each.name) == (pod.namespace, pod.name)), None)

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

    def _cdi_specs(self, node: str) -> tuple[dict[str, str], dict[str, str]]:
        """What each CDI id means; and why nobody can read the files that define none, by their paths: nobody knows whose they are."""
        defined: dict[str, str] = {}
        broken: dict[str, str] = {}
        for path in sorted(self.cdi_files(node)):
            text = self._shell(node, _READ, path)
            try:
                defined |= _definitions(text) if text else {}
            except _Unreadable as why:
                broken[path] = str(why)
        return defined, broken

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


def _definitions(text: str) -> dict[str, str]:
    """What each CDI id of a file means, as text that can be compared."""
    spec = _parsed(text)
    try:
        kind, devices, common = spec["kind"], spec["devices"], spec.get("containerEdits")
        return {f"{kind}={each['name']}": json.dumps([each, common], sort_keys=True) for each in devices}
    except KeyError as missing:
        raise _Unreadable(f"it lacks {missing}") from missing
    except (AttributeError, TypeError) as wrong:
        raise _Unreadable(f"it is not shaped as CDI says: {wrong}") from wrong


def _parsed(text: str) -> Any:
    """JSON, which may have tabs, or any other YAML."""
    with contextlib.suppress(ValueError):
        return json.loads(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise _Unreadable(f"it is neither JSON nor YAML: {wrong}") from wrong


def _devices(pod: podresources_v1_pb2.PodResources) -> dict[str, frozenset[Device]]:
    found: dict[str, set[Device]] = {}
    for claim in _claims(pod):
        devices = (Device(each.driver_name, each.pool_name, each.device_name) for each in claim.claim_resources)
        home = "" if claim.claim_namespace == pod.namespace else f"{claim.claim_namespace}/"
        found.setdefault(f"{home}{claim.claim_name}", set()).update(devices)
    return {name: frozenset(devices) for name, devices in found.items()}


def _claims(pod: podresources_v1_pb2.PodResources) -> Iterator[podresources_v1_pb2.DynamicResource]:
    return (claim for container in pod.containers for claim in container.dynamic_resources)


def _allocated(pod: podresources_v1_pb2.PodResources) -> Iterator[podresources_v1_pb2.ClaimResource]:
    return (device for claim in _claims(pod) for device in claim.claim_resources)
