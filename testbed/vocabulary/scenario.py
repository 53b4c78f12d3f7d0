"""The scenario of a test: manifests applied in a namespace of its own, access to their objects, and their deletion."""

from __future__ import annotations

import contextlib
import json
import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Object
from testbed.kube.ownership import PROCESS, REQUIREMENT
from testbed.models.driver_sections import Configuration
from testbed.rendering import render_file, variables_of
from testbed.vocabulary import budgets, evidence
from testbed.vocabulary.claim_shape import with_claim_shape
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.cluster.quotas import Quota
from testbed.vocabulary.cluster.taint_rules import TaintRule
from testbed.vocabulary.driver.published_values import PublishedValue
from testbed.vocabulary.driver.returned_devices import wait_for_returned_devices
from testbed.vocabulary.ledger import Ledger
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.pods.pod_settings import on_node, with_pod_settings
from testbed.vocabulary.pods.probe_command import as_container
from testbed.vocabulary.pods.workloads import DaemonSet, pods_of
from testbed.vocabulary.pull_secret import pull_secret_for
from testbed.vocabulary.shared_allocations import with_shares
from testbed.vocabulary.world import World
from testbed.waiting import unshortened

# These have no namespace, so their names must contain the scenario's name. They are deleted with it.
_CLUSTER_WIDE = ("DeviceClass", "DeviceTaintRule", "RuntimeClass")
_REFUSALS = (400, 403, 409, 422)


@dataclass(frozen=True)
class Scenario:
    """The namespace of one test and the objects in it."""

    world: World
    namespace: str
    ledger: Ledger

    def apply(self, manifest: str, **variables: object) -> None:
        """Apply a manifest, a path under manifests/suites. It is rendered with the common variables and those of the test.

        If a variable is the identity of a device, the manifest's pods run on the node of that device.
        """
        self.world.slices()  # remembers how devices are published before they are allocated
        for document in self._rendered(manifest, variables):
            self.ledger.apply(document)

    def should_be_refused(self, manifest: str, **variables: object) -> str:
        """Apply a manifest with an object that the API server must reject, and return the error message."""
        return self._refusal(manifest, lambda: self.apply(manifest, **variables))

    def should_be_refused_on_create(self, manifest: str, **variables: object) -> str:
        """Do the same with create requests: server-side apply fails before duplicate list entries and wrong types are validated."""
        return self._refusal(manifest, lambda: self._create(manifest, variables))

    def apply_status(self, manifest: str, *, by: str = "driver", dry_run: bool = False, **variables: object) -> None:
        """Apply the status of existing objects as field manager `by`, as `kubectl apply --server-side --subresource=status` does.

        With `dry_run` the API server only validates it.
        """
        self._apply_status(manifest, variables, by, dry_run=dry_run)

    def status_should_be_accepted(self, manifest: str, *, by: str = "driver", **variables: object) -> None:
        """Apply a status that the API server must accept, because it is just within the limits."""
        try:
            self._apply_status(manifest, variables, by)
        except ApiError as refused:
            if refused.status in _REFUSALS:
                raise NotObserved(
                    f"expected the API server to accept {manifest}\n  last seen: it was rejected: {refused.message}"
                ) from refused
            raise

    def status_should_be_refused(self, manifest: str, *, by: str = "driver", **variables: object) -> str:
        """Apply a status that the API server must reject, and return the error message."""
        return self._refusal(manifest, lambda: self._apply_status(manifest, variables, by))

    @property
    def toleration_seconds(self) -> int:
        """Return seconds for `tolerationSeconds` that are longer than a `should_stay_…`, with any patience.

        The API has whole seconds and truncates the start time, which may take one second off.
        """
        return math.ceil(2 * unshortened(budgets.STAYS).effective_seconds) + 1

    def label_namespace(self, label: str, value: str) -> None:
        """Set a label of the scenario's namespace, as an administrator does."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.world.kube.patch(namespace, {"metadata": {"labels": {label: value}}})

    def pod(self, name: str) -> Pod:
        """Return the pod of this name."""
        return Pod(self.world, self.namespace, name)

    def pods(self, *names: str) -> Pods:
        """Return the pods of these names, in this order."""
        return Pods(self.pod(name) for name in names)

    def claim(self, name: str) -> Claim:
        """Return the ResourceClaim of this name."""
        return Claim(self.world, self.namespace, name)

    def quota(self, name: str) -> Quota:
        """Return the ResourceQuota of this name."""
        return Quota(self.world, self.namespace, name)

    @property
    def taint_rule(self) -> TaintRule:
        """Return the DeviceTaintRule with the name of the scenario."""
        return TaintRule(self.world, self.namespace)

    def daemonset(self, name: str) -> DaemonSet:
        """Return the DaemonSet of this name."""
        return DaemonSet(self.world, self.namespace, name)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object of the scenario without waiting, as `kubectl delete KIND NAME` does."""
        for each in self.ledger.entries:
            if (each["kind"].lower(), each["metadata"]["name"]) == (kind, name):
                self.world.kube.delete(each)
                return
        raise UsageError(f"the scenario did not create {kind} {name}")

    def pods_of(self, owner: str, count: int) -> Pods:
        """Wait until a workload has `count` pods, and return them. `owner` is their label `app`."""
        return pods_of(self.world, self.namespace, owner, count)

    def capture(self, into: Path) -> None:
        """Write the evidence of the test before its objects are deleted."""
        evidence.capture(self.world, self.namespace, into)

    def _create(self, manifest: str, variables: dict[str, object]) -> None:
        for document in self._rendered(manifest, variables):
            self.ledger.create(document)

    def _apply_status(self, manifest: str, variables: dict[str, object], by: str, *, dry_run: bool = False) -> None:
        driver = self.world.driver_file.driver
        for document in self._rendered(manifest, variables):
            complete = with_shares(document, driver, self.world.slices)
            self.world.kube.apply(complete, manager=by, force=False, subresource="status", dry_run=dry_run)

    def _rendered(self, manifest: str, variables: dict[str, object]) -> list[Object]:
        facts: dict[str, object] = {
            "device_class": self.world.driver_file.device_class,
            "classes": self.world.driver_file.classes,
            "driver": self.world.driver_file.driver,
            "image": self.world.workload_image,
            "probe": as_container(self.world.driver_file.probe.argv),
            "settings": _settings(self.world.driver_file.configuration),
            "unique": self.namespace,
        }
        path = _found(self.world.manifests, manifest)
        if "class_selectors" in variables_of(path):  # reading them takes a request
            facts["class_selectors"] = self.world.class_selectors
        text = render_file(path, {**facts, **variables}, allow_unused=True)
        located = [_in_namespace(document, self.namespace) for document in _documents(text, path)]
        made, node = [self._completed(document) for document in located], _node_of_devices(variables)
        return [on_node(document, node) for document in made] if node else made

    def _completed(self, document: Object) -> Object:
        """Return the object with what the driver file declares about claims and pods."""
        driver_file, of_companions = self.world.driver_file, [each.device_class for each in self.world.companions]
        return with_pod_settings(with_claim_shape(document, driver_file, of_companions), driver_file)

    def _refusal(self, manifest: str, attempt: Callable[[], None]) -> str:
        try:
            attempt()
        except ApiError as refused:
            if refused.status in _REFUSALS:
                return refused.message
            raise
        raise NotObserved(f"expected the API server to reject {manifest}\n  last seen: it accepted all objects")


@contextlib.contextmanager
def new_scenario(world: World, requirement: str) -> Iterator[Scenario]:
    """Create a scenario in a new namespace, and delete all its objects at the end, also after a failure.

    First wait until the driver publishes all devices again that earlier tests used.
    """
    wait_for_returned_devices(world)
    name = f"dra-{requirement.lower()}-{secrets.token_hex(3)}"
    marks = {REQUIREMENT: requirement, PROCESS: world.process}
    scenario = Scenario(world, name, Ledger(world.kube, name, lambda each: world.owner.mark(each, **marks)))
    try:
        secret = pull_secret_for(world, name)
        for manifest in (*_namespace_objects(name, secret), *filter(None, [secret])):
            scenario.ledger.apply(manifest)
        yield scenario
    finally:
        scenario.ledger.clean_up()
        world.probe_results.forget(name)


def _node_of_devices(variables: Mapping[str, object]) -> str:
    """Return the node of the devices whose identities are variables of a manifest, or ''. Other nodes may have the same identities."""
    nodes = {each.node for each in variables.values() if isinstance(each, PublishedValue) and each.node}
    if len(nodes) > 1:
        raise UsageError(f"a manifest has variables with devices of several nodes: {', '.join(sorted(nodes))}")
    return next(iter(nodes), "")


def _settings(known: Configuration | None) -> dict[str, str]:
    """Return the opaque parameters of the driver file by their names there, as JSON on one line."""
    if known is None:
        return {}
    given = {name: each.parameters for name, each in known.settings.items()}
    if known.invalid:
        given["invalid"] = known.invalid.parameters
    return {name: json.dumps(each) for name, each in given.items()}


def _namespace_objects(name: str, pull_secret: Object | None = None) -> tuple[Object, Object]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    # Pods need the account at once, and the controller takes a moment to create it. They do not use the API and get no token.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    pulling = {"imagePullSecrets": [{"name": pull_secret["metadata"]["name"]}]} if pull_secret else {}
    return namespace, {**account, "automountServiceAccountToken": False, **pulling}


def _found(folder: Path, manifest: str) -> Path:
    path = folder / manifest
    if not path.is_file():
        known = [str(each.relative_to(folder)) for each in folder.rglob("*.yaml")]
        raise UsageError(f"manifest {manifest} does not exist in {folder}", hint=did_you_mean(manifest, known))
    return path


def _documents(text: str, path: Path) -> list[Object]:
    unrendered = re.search(r"\{\{.*?\}\}|<no value>", text)
    if unrendered:
        raise UsageError(f"{path}: {unrendered[0]} was not rendered")
    try:
        return [document for document in yaml.safe_load_all(text) if document]
    except yaml.YAMLError as broken:
        raise UsageError(f"{path} is not YAML: {broken}") from broken


def _in_namespace(document: Object, namespace: str) -> Object:
    """Return the object with the scenario's namespace. Raise UsageError for a shared cluster-wide name or another namespace."""
    if document["kind"] in _CLUSTER_WIDE:
        if namespace not in document["metadata"]["name"]:
            raise UsageError(
                f"{document['kind']} {document['metadata']['name']} is shared by all tests",
                hint="give it a name of the scenario's own ({{ unique }})",
            )
        return document
    if document["metadata"].get("namespace", namespace) != namespace:
        raise UsageError(
            f"{document['kind']} {document['metadata']['name']} sets metadata.namespace",
            hint="remove it: a scenario has a namespace of its own",
        )
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
