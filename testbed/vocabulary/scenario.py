"""The word `scenario`: a manifest applied in a namespace of the test's own, with names for what is in it, and its end."""

from __future__ import annotations

import contextlib
import json
import math
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Object
from testbed.kube.ownership import PROCESS, REQUIREMENT
from testbed.models.driver_sections import Configuration
from testbed.rendering import render_file, variables_of
from testbed.vocabulary import budgets, evidence
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.cluster.quotas import Quota
from testbed.vocabulary.cluster.taint_rules import TaintRule
from testbed.vocabulary.ledger import Ledger
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.pods.tolerations import with_tolerations
from testbed.vocabulary.pods.workloads import DaemonSet, pods_of
from testbed.vocabulary.world import World

# What has no namespace must bear the scenario's own name in its name, and is deleted with it.
_CLUSTER_WIDE = ("DeviceClass", "DeviceTaintRule")
_REFUSALS = (400, 403, 409, 422)


@dataclass(frozen=True)
class Scenario:
    """What one test made, and the words for it."""

    world: World
    namespace: str
    ledger: Ledger

    def apply(self, manifest: str, **variables: object) -> None:
        """Apply a manifest (a path under manifests/suites). It may use the facts that every manifest may use, and what the test gives."""
        for document in self._rendered(manifest, variables):
            self.ledger.apply(document)

    def should_be_refused(self, manifest: str, **variables: object) -> str:
        """Apply a manifest of which the API server must refuse an object; its words. Nothing of it outlives the test."""
        return self._refusal(manifest, lambda: self.apply(manifest, **variables))

    def should_be_refused_on_create(self, manifest: str, **variables: object) -> str:
        """The same, but as `kubectl create` does it: where something is in a list twice, or of another type, nobody judges an apply."""
        return self._refusal(manifest, lambda: self._create(manifest, variables))

    def apply_status(self, manifest: str, *, by: str = "driver", dry_run: bool = False, **variables: object) -> None:
        """Apply the status of objects that are there, as the writer `by`, as kubectl apply --server-side --subresource=status does.

        With `dry_run` the API server only says whether it would take it.
        """
        self._apply_status(manifest, variables, by, dry_run=dry_run)

    def status_should_be_accepted(self, manifest: str, *, by: str = "driver", **variables: object) -> None:
        """Apply a status that the API server must take, because it is just within its limits."""
        try:
            self._apply_status(manifest, variables, by)
        except ApiError as refused:
            if refused.status in _REFUSALS:
                said = f"expected the API server to take {manifest}\n  last seen: it said {refused.message}"
                raise NotObserved(said) from refused
            raise

    def status_should_be_refused(self, manifest: str, *, by: str = "driver", **variables: object) -> str:
        """Apply a status that the API server must refuse; its words."""
        return self._refusal(manifest, lambda: self._apply_status(manifest, variables, by))

    @property
    def toleration_seconds(self) -> int:
        """Seconds for something that has to come after a `should_stay_…`: surely more than that takes, with any patience.

        Whole ones, and one more, because the API counts no others and forgets the rest of the one that it began in.
        """
        return math.ceil(2 * budgets.STAYS.effective_seconds) + 1

    def label_namespace(self, label: str, value: str) -> None:
        """Label the scenario's namespace, as its administrator does."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.world.kube.patch(namespace, {"metadata": {"labels": {label: value}}})

    def pod(self, name: str) -> Pod:
        """The pod of that name."""
        return Pod(self.world, self.namespace, name)

    def pods(self, *names: str) -> Pods:
        """These pods, in this order."""
        return Pods(self.pod(name) for name in names)

    def claim(self, name: str) -> Claim:
        """The claim of that name."""
        return Claim(self.world, self.namespace, name)

    def quota(self, name: str) -> Quota:
        """The ResourceQuota of that name."""
        return Quota(self.world, self.namespace, name)

    @property
    def taint_rule(self) -> TaintRule:
        """The DeviceTaintRule of the scenario, which has its name."""
        return TaintRule(self.world, self.namespace)

    def daemonset(self, name: str) -> DaemonSet:
        """The DaemonSet of that name."""
        return DaemonSet(self.world, self.namespace, name)

    def delete(self, kind: str, name: str) -> None:
        """Ask for the end of an object that the scenario made, as `kubectl delete KIND NAME` does."""
        for each in self.ledger.entries:
            if (each["kind"].lower(), each["metadata"]["name"]) == (kind, name):
                self.world.kube.delete(each)
                return
        raise UsageError(f"the scenario made no {kind} {name}")

    def pods_of(self, owner: str, count: int) -> Pods:
        """So many pods that a controller made, by their label `app`."""
        return pods_of(self.world, self.namespace, owner, count)

    def capture(self, into: Path) -> None:
        """Keep what an explanation may need, before it is deleted."""
        evidence.capture(self.world, self.namespace, into)

    def _create(self, manifest: str, variables: dict[str, object]) -> None:
        for document in self._rendered(manifest, variables):
            self.ledger.create(document)

    def _apply_status(self, manifest: str, variables: dict[str, object], by: str, *, dry_run: bool = False) -> None:
        for document in self._rendered(manifest, variables):
            self.world.kube.apply(document, manager=by, force=False, subresource="status", dry_run=dry_run)

    def _rendered(self, manifest: str, variables: dict[str, object]) -> list[Object]:
        facts: dict[str, object] = {
            "device_class": self.world.driver_file.device_class,
            "classes": self.world.driver_file.classes,
            "driver": self.world.driver_file.driver,
            "image": self.world.workload_image,
            "probe": list(self.world.driver_file.probe.command),
            "settings": _settings(self.world.driver_file.configuration),
            "unique": self.namespace,
        }
        path = _found(self.world.manifests, manifest)
        if "class_selectors" in variables_of(path):  # only a class of a test's own asks the cluster for them
            facts["class_selectors"] = self.world.class_selectors
        text = render_file(path, {**facts, **variables}, allow_unused=True)
        tolerations = self.world.driver_file.nodes.tolerations
        placed = [_placed(document, self.namespace) for document in _documents(text, path)]
        return [with_tolerations(document, tolerations) for document in placed]

    def _refusal(self, manifest: str, attempt: Callable[[], None]) -> str:
        try:
            attempt()
        except ApiError as refused:
            if refused.status in _REFUSALS:
                return refused.message
            raise
        raise NotObserved(f"expected the API server to refuse {manifest}\n  last seen: it took all that is in it")


@contextlib.contextmanager
def new_scenario(world: World, requirement: str) -> Iterator[Scenario]:
    """A new scenario in a namespace that nobody else has; all of it is deleted again, however the test ends."""
    name = f"dra-{requirement.lower()}-{secrets.token_hex(3)}"
    marks = {REQUIREMENT: requirement, PROCESS: world.process}
    scenario = Scenario(world, name, Ledger(world.kube, name, lambda each: world.owner.mark(each, **marks)))
    try:
        for manifest in _home(name):
            scenario.ledger.apply(manifest)
        yield scenario
    finally:
        scenario.ledger.clean_up()
        world.probe_results.forget(name)


def _settings(known: Configuration | None) -> dict[str, str]:
    """The opaque parameters that the driver file gives, by their names there, each as JSON on one line."""
    if known is None:
        return {}
    given = {"one": known.one.parameters, "other": known.other.parameters, "invalid": known.invalid.parameters}
    return {name: json.dumps(each) for name, each in given.items()}


def _home(name: str) -> tuple[Object, Object]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    # Pods need the account at once, and the controller takes a moment to make it. They never talk to the API, so they get no token.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    return namespace, {**account, "automountServiceAccountToken": False}


def _found(folder: Path, manifest: str) -> Path:
    path = folder / manifest
    if not path.is_file():
        known = [str(each.relative_to(folder)) for each in folder.rglob("*.yaml")]
        raise UsageError(f"there is no manifest {manifest} in {folder}", hint=did_you_mean(manifest, known))
    return path


def _documents(text: str, path: Path) -> list[Object]:
    leftover = re.search(r"\{\{.*?\}\}|<no value>", text)
    if leftover:
        raise UsageError(f"{path}: {leftover[0]} is left after rendering")
    try:
        return [document for document in yaml.safe_load_all(text) if document]
    except yaml.YAMLError as broken:
        raise UsageError(f"{path} is not YAML: {broken}") from broken


def _placed(document: Object, namespace: str) -> Object:
    """The object in the scenario's namespace, or, where its kind has none, under a name that only this scenario has."""
    if document["kind"] in _CLUSTER_WIDE:
        if namespace not in document["metadata"]["name"]:
            raise UsageError(
                f"{document['kind']} {document['metadata']['name']} is everybody's",
                hint="put {{ unique }} into its name",
            )
        return document
    if document["metadata"].get("namespace", namespace) != namespace:
        raise UsageError(f"{document['kind']} {document['metadata']['name']} names a namespace; a scenario has its own")
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
