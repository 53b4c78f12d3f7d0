"""The kubelets: their PodResources API, their metrics, and the CDI files on their nodes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import grpc

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, NothingToJudge, TestbedError
from testbed.kubelet.stubs import podresources_v1_pb2, podresources_v1_pb2_grpc
from testbed.providers.base import Cluster, Node, ReachesSockets
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.cluster import cdi_specs
from testbed.vocabulary.cluster.cdi_files import read_cdi_files
from testbed.vocabulary.cluster.cdi_specs import CdiEntry, Unreadable
from testbed.vocabulary.observing.observation import Diagnosis
from testbed.vocabulary.observing.queries import eventually_or_explain
from testbed.vocabulary.pods.container import with_digest
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.world import World
from testbed.waiting import NotYet

_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
_ANSWER = 10.0
_IN_USE = "dra_resource_claims_in_use"
_CALLS = "dra_grpc_operations_duration_seconds_count"
_NOT_CLEANED_UP = Diagnosis("the driver has not unprepared the claim, or has not removed its CDI file")


@dataclass(frozen=True)
class Kubelets:
    """The kubelets of the cluster."""

    world: World

    def list_claims(self, pod: Pod) -> dict[str, CheckedSet[Device]]:
        """Return the devices of each claim of a pod from PodResources List; {} for an unknown pod.

        A claim in another namespace than the pod has the name NAMESPACE/NAME.
        """
        return self._listed(pod, pod.node)

    def lists(self, pod: Pod) -> bool:
        """Return True if PodResources List contains a pod."""
        return self._entry(pod, pod.node) is not None

    def get_claims(self, pod: Pod) -> dict[str, CheckedSet[Device]]:
        """Return the devices of each claim of a pod from PodResources Get."""
        return _devices(self._get(pod))

    def list_shares(self, pod: Pod) -> CheckedSet[str]:
        """Return the share IDs of a pod's devices from PodResources List; NothingToJudge if the driver names no devices in its answers."""
        found = list(_allocated(self._entry(pod, pod.node) or podresources_v1_pb2.PodResources()))
        if not found:
            raise NothingToJudge("the driver names no devices in its answer to NodePrepareResources")
        return CheckedSet(device.share_id for device in found if device.share_id)

    def cdi_ids(self, pod: Pod) -> CheckedSet[str]:
        """Return the CDI IDs of all devices of a pod's claims from PodResources Get."""
        return CheckedSet(cdi.name for device in _allocated(self._get(pod)) for cdi in device.cdi_devices)

    def should_list_no_claims(self, pod: Pod, node: str) -> None:
        """Wait until PodResources List of a node has no claims of a pod."""

        def removed() -> None:
            if left := self._listed(pod, node):
                raise NotYet(f"it lists {', '.join(sorted(left))}")

        self._eventually(removed, f"the kubelet of {node} to list no claim of pod {pod.name}")

    def claims_in_use(self, node: str) -> int:
        """Return the kubelet metric for the prepared claims of the driver on a node."""
        return int(self._metric(node, _IN_USE, driver_name=self.world.driver_file.driver))

    def should_have_claims_in_use(self, node: str, count: int) -> None:
        """Wait until the kubelet metric for the prepared claims of the driver on a node has this value."""

        def counted() -> None:
            if (now := self.claims_in_use(node)) != count:
                raise NotYet(f"{_IN_USE} is {now}")

        self._eventually(counted, f"{_IN_USE} of {self.world.driver_file.driver} on {node} to be {count}")

    def calls(self, node: str, method: str) -> int:
        """Return the kubelet metric for the successful calls of a method of the driver, such as NodePrepareResources."""
        labels = {"driver_name": self.world.driver_file.driver, "grpc_status_code": "OK"}
        return int(self._metric(node, _CALLS, method_name=f".*/{method}", **labels))

    def common_cdi_ids(self, pod: Pod, definitions: Mapping[str, str]) -> CheckedSet[str]:
        """Return the CDI IDs of a pod's claims that are among these; NothingToJudge if the driver returned none for the claims."""
        found = self.cdi_ids(pod)
        if not (found and definitions):
            raise NothingToJudge("the driver returns no CDI ID for a prepared claim")
        return found & definitions.keys()

    def cdi_content(self, node: str) -> frozenset[CdiEntry]:
        """Return the CDI files on a node, and what they define."""
        return frozenset(
            entry for path, text in self._cdi_files(node).items() for entry in cdi_specs.entries(path, text)
        )

    def ids_defined_as(self, definitions: Mapping[str, str], node: str) -> CheckedSet[str]:
        """Return those of the CDI IDs that the CDI files on a node define in the same way. Unreadable files define none."""
        now, _ = self._cdi_specs(node)
        return CheckedSet(each for each in definitions if now.get(each) == definitions[each])

    def cdi_definitions(self, pod: Pod) -> dict[str, str]:
        """Return the definition of each CDI ID of a pod's claims as text. Raise DriverFailed for an ID that is not defined on the node."""
        ids, (defined, broken) = self.cdi_ids(pod), self._cdi_specs(pod.node)
        missing = sorted(ids - defined.keys())
        if missing:
            unread = "".join(f"\n  last seen: {path} is unreadable: {why}" for path, why in sorted(broken.items()))
            raise DriverFailed(f"no CDI file on {pod.node} defines {', '.join(missing)} of pod {pod.name}{unread}")
        return {each: defined[each] for each in sorted(ids)}

    def cdi_edits(self, pod: Pod) -> CheckedSet[str]:
        """Return what the CDI IDs of a pod's claims add to its containers, as Container.environment shows it.

        A variable that several IDs define differently is left out: only one value can be seen. NothingToJudge if nothing is left.
        """
        found = [cdi_specs.edits(each) for each in self.cdi_definitions(pod).values()]
        variables = frozenset[str]().union(*(each for each, _ in found))
        names = [each.partition("=")[0] for each in variables]
        clear = {with_digest(each) for each in variables if names.count(each.partition("=")[0]) == 1}
        everything = CheckedSet(clear.union(*(paths for _, paths in found)))
        if not everything:
            raise NothingToJudge("the CDI IDs of the claim add no variable, mount or device node")
        return everything

    def should_have_cdi_content(self, node: str, wanted: frozenset[CdiEntry]) -> None:
        """Wait until a node has exactly these CDI files, with the same definitions."""

        def restored() -> None:
            if found := cdi_specs.differences(wanted, self.cdi_content(node)):
                raise NotYet(found)

        self._eventually(restored, f"node {node} to have the same CDI files as before")

    def _eventually(self, check: Callable[[], None], expected: str) -> None:
        eventually_or_explain(self.world, check, expected, budgets.RELEASED, _NOT_CLEANED_UP, longest_pause=0.2)

    def _get(self, pod: Pod) -> podresources_v1_pb2.PodResources:
        wanted = podresources_v1_pb2.GetPodResourcesRequest(pod_name=pod.name, pod_namespace=pod.namespace)
        with self._lister(pod.node) as lister:
            found: podresources_v1_pb2.PodResources = lister.Get(wanted, timeout=_ANSWER).pod_resources
        return found

    def _listed(self, pod: Pod, node: str) -> dict[str, CheckedSet[Device]]:
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
                f"the kubelets' sockets on {cluster.name} cannot be reached",
                hint="the requirement of this test must need Capability.DRIVER_SOCKET",
            )
        options = [
            ("grpc.default_authority", "localhost")
        ]  # Go servers reject the default, which is the path of the socket
        with grpc.insecure_channel(f"unix:{cluster.socket(node, _SOCKET)}", options) as channel:
            try:
                yield podresources_v1_pb2_grpc.PodResourcesListerStub(channel)
            except grpc.RpcError as refused:
                reason = refused.details() if isinstance(refused, grpc.Call) else str(refused)
                raise TestbedError(
                    f"the PodResources API of the kubelet on {node} does not answer: {reason}"
                ) from refused

    def _metric(self, node: str, name: str, **labels: str) -> float:
        text = str(self.world.kube.request("GET", f"/api/v1/nodes/{node}/proxy/metrics"))
        return value(text, name, **labels)

    def _cdi_specs(self, node: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the definitions by CDI ID, and for unreadable files, whose owners are unknown, the reasons by path."""
        defined: dict[str, str] = {}
        broken: dict[str, str] = {}
        for path, text in self._cdi_files(node).items():
            try:
                defined |= cdi_specs.definitions(text)
            except Unreadable as why:
                broken[path] = str(why)
        return defined, broken

    def _cdi_files(self, node: str) -> dict[str, str]:
        return read_cdi_files(self._cluster_node(node))

    def _cluster_node(self, name: str) -> Node:
        return next(each for each in self._cluster.nodes() if each.name == name)

    @property
    def _cluster(self) -> Cluster:
        if self.world.cluster is None:
            raise TestbedError("this fixture needs a running testbed", hint="pass --testbed NAME")
        return self.world.cluster


def value(text: str, name: str, **labels: str) -> float:
    """Return the sum of the samples of a metric whose labels match these regular expressions, or 0."""
    total = 0.0
    for given, number in re.findall(rf"^{re.escape(name)}{{(.*)}} (\S+)$", text, re.MULTILINE):
        has = dict(re.findall(r'(\w+)="([^"]*)"', given))
        if all(re.fullmatch(pattern, has.get(label, "")) for label, pattern in labels.items()):
            total += float(number)
    return total


def _devices(pod: podresources_v1_pb2.PodResources) -> dict[str, CheckedSet[Device]]:
    found: dict[str, set[Device]] = {}
    for claim in _claims(pod):
        devices = (Device(each.driver_name, each.pool_name, each.device_name) for each in claim.claim_resources)
        home = "" if claim.claim_namespace == pod.namespace else f"{claim.claim_namespace}/"
        found.setdefault(f"{home}{claim.claim_name}", set()).update(devices)
    return {name: CheckedSet(devices) for name, devices in found.items()}


def _claims(pod: podresources_v1_pb2.PodResources) -> Iterator[podresources_v1_pb2.DynamicResource]:
    return (claim for container in pod.containers for claim in container.dynamic_resources)


def _allocated(pod: podresources_v1_pb2.PodResources) -> Iterator[podresources_v1_pb2.ClaimResource]:
    return (device for claim in _claims(pod) for device in claim.claim_resources)
