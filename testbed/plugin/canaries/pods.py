"""Run canary pods on nodes and observe how far they come. Used by `surroundings` after a test has failed.

Half of them have no claim. The others have a claim for a device of a driver that exists only as a ResourceSlice. It needs no image and no
pods, so it works with every driver under test. The controller manager has to generate the claim, the scheduler to allocate it, and the
kubelet to look for its driver; only NodePrepareResources and CDI are left out, which the driver under test serves itself.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import ApiError, TestbedError, WaitTimeout
from testbed.kube import messages
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import PROCESS, Owner
from testbed.plugin.canaries.findings import CanaryState
from testbed.rendering import render_file
from testbed.vocabulary.observing.diagnosis import describe_pod, unschedulable_conditions
from testbed.vocabulary.pods.pod_settings import restricted
from testbed.waiting import Budget, NotYet, eventually

_MANIFEST = Path(__file__).with_name("canary.yaml")
_CANARIES = Budget("canary pods", 60, "as long as a pod of a test may take; on a quiet machine a second")
_REFUSED = (403, 404, 422)
_CLUSTER_WIDE = ("ResourceSlice", "DeviceClass")


@dataclass(frozen=True)
class CanaryResult:
    """How far the canary pods came. `controller_manager` says what it has not done, or is ''."""

    pods: tuple[CanaryState, ...] = ()
    controller_manager: str = ""

    @property
    def missing(self) -> list[str]:
        """Return what has not happened yet."""
        pods = [f"on {each.node}: {each.seen}" for each in self.pods if not each.is_handled]
        return [*filter(None, [self.controller_manager]), *pods]


@dataclass(frozen=True)
class Canaries:
    """Creates canary pods in a namespace of their own, labelled with this process, and deletes them."""

    kube: Kube
    owner: Owner
    image: str
    process: str

    def run(self, nodes: Sequence[str], *, with_claims: bool) -> CanaryResult:
        """Run canaries on these nodes until all have come as far as they can, or the budget is over. Return what was observed last."""
        name = f"dra-canary-{secrets.token_hex(3)}"
        with self._created(name, nodes, with_claims=with_claims):
            last = CanaryResult()

            def check() -> None:
                nonlocal last
                last = self._observe(name, nodes)
                if last.missing:
                    raise NotYet("; ".join(last.missing))

            with contextlib.suppress(WaitTimeout):
                eventually(check, "the canary pods to run", _CANARIES, longest_pause=0.2)
            return last

    @contextlib.contextmanager
    def _created(self, name: str, nodes: Sequence[str], *, with_claims: bool) -> Iterator[None]:
        created: list[Object] = []
        try:
            created.append(self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            uid = created[0]["metadata"].get("uid", "")
            for each in self._manifests(name, uid, nodes, with_claims=with_claims):
                with self._without_permission_for_claims(each):
                    created.append(self._create(each))
            yield
        finally:
            self._delete(name, created)

    def _create(self, manifest: Object) -> Object:
        return self.kube.create(self.owner.mark(manifest, **{PROCESS: self.process}))

    def _manifests(self, name: str, uid: str, nodes: Sequence[str], *, with_claims: bool) -> Iterator[Object]:
        given: dict[str, Any] = {"name": name, "uid": uid, "nodes": list(nodes), "image": self.image}
        text = render_file(_MANIFEST, {**given, "with_claims": with_claims})
        for each in yaml.safe_load_all(text):
            home = {} if each["kind"] in _CLUSTER_WIDE else {"namespace": name}
            yield restricted({**each, "metadata": {**each["metadata"], **home}})

    @contextlib.contextmanager
    def _without_permission_for_claims(self, manifest: Object) -> Iterator[None]:
        """Go on without canaries with claims if their objects must not be created on this cluster."""
        try:
            yield
        except ApiError as refused:
            uses_claims = manifest["kind"] != "Pod" or "resourceClaims" in manifest["spec"]
            if refused.status not in _REFUSED or not uses_claims or manifest["kind"] == "ServiceAccount":
                raise

    def _delete(self, name: str, created: Sequence[Object]) -> None:
        """Delete without waiting; the pods by force, because a broken kubelet would never end them. The session's end deletes the rest."""
        with contextlib.suppress(TestbedError):
            for pod in self.kube.list("v1", "Pod", name):
                self.kube.delete(pod, grace=0)
        for each in reversed([each for each in created if each["kind"] in ("Namespace", *_CLUSTER_WIDE)]):
            with contextlib.suppress(TestbedError):
                self.kube.delete(each)

    def _observe(self, name: str, nodes: Sequence[str]) -> CanaryResult:
        pods = self.kube.list("v1", "Pod", name)
        generated = {each["name"] for pod in pods for each in pod.get("status", {}).get("resourceClaimStatuses") or ()}
        waits = any("resourceClaims" in pod["spec"] for pod in pods)
        events = self.kube.list("v1", "Event", name) if waits and generated else []
        return CanaryResult(tuple(_state(pod, nodes, events) for pod in pods), self._missing_account(name))

    def _missing_account(self, name: str) -> str:
        """Return what the controller manager has not done in a new namespace, or ''; also '' without the permission to look."""
        try:
            found = self.kube.find("v1", "ServiceAccount", "default", name)
        except ApiError as refused:
            if refused.status in _REFUSED:
                return ""
            raise
        return "" if found else "the controller manager has not created the default ServiceAccount of a new namespace"


def _state(pod: Object, nodes: Sequence[str], events: Sequence[Object]) -> CanaryState:
    kind, _, number = pod["metadata"]["name"].rpartition("-")
    node, seen = nodes[int(number)], f"canary pod: {describe_pod(pod)}"
    is_bound = bool(pod["spec"].get("nodeName"))
    if kind == "plain":
        is_handled = pod.get("status", {}).get("phase") == "Running" or _lacks_image(pod)
        return CanaryState(node, is_bound, is_handled, seen, has_no_room=_is_unschedulable(pod))
    named = [each for each in events if each["involvedObject"].get("name") == pod["metadata"]["name"]]
    # The kubelet is right to report that no driver of this name is registered.
    is_handled = any(each.get("reason") == messages.FAILED_PREPARE for each in named)
    has_its_claim = bool(pod.get("status", {}).get("resourceClaimStatuses"))
    seen = f"with a claim, {seen}"
    return CanaryState(node, is_bound, is_handled, seen, has_claim=True, has_its_claim=has_its_claim)


def _is_unschedulable(pod: Object) -> bool:
    """Return True if the scheduler has tried, and found that the pod fits on no node."""
    return any(each.get("reason") == messages.UNSCHEDULABLE for each in unschedulable_conditions(pod))


def _lacks_image(pod: Object) -> bool:
    """Return True if only the image is missing: the node got as far as looking for it, and the test's own message names the image."""
    states = [each.get("state", {}) for each in pod.get("status", {}).get("containerStatuses") or ()]
    reasons = [str(each.get("waiting", {}).get("reason", "")) for each in states]
    return any(each.startswith((messages.IMAGE_ERROR, messages.IMAGE_PULL)) for each in reasons)
