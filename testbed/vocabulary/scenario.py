"""The word `scenario`: a manifest applied in a namespace of the test's own, with names for what is in it, and its end."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.errors import UsageError, did_you_mean
from testbed.kube.client import Object
from testbed.rendering import render_file
from testbed.vocabulary import evidence
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.ledger import Ledger
from testbed.vocabulary.pods import Pod, Pods
from testbed.vocabulary.workloads import DaemonSet
from testbed.vocabulary.world import TESTBED_LABEL, World

_REQUIREMENT_LABEL = "dra-testbed/requirement"


@dataclass(frozen=True)
class Scenario:
    """What one test made, and the words for it."""

    world: World
    namespace: str
    ledger: Ledger

    def apply(self, manifest: str, **variables: object) -> None:
        """Apply a manifest (a path under manifests/suites). It may use `device_class`, `driver`, `image` and what the test gives."""
        facts = {
            "device_class": self.world.driver_file.device_class,
            "driver": self.world.driver_file.driver,
            "image": self.world.workload_image,
        }
        path = _found(self.world.manifests, manifest)
        text = render_file(path, {**facts, **variables}, allow_unused=True)
        for document in _documents(text, path):
            self.ledger.apply(_placed(document, self.namespace))

    def pod(self, name: str) -> Pod:
        """The pod of that name."""
        return Pod(self.world, self.namespace, name)

    def pods(self, *names: str) -> Pods:
        """These pods, in this order."""
        return Pods(self.pod(name) for name in names)

    def claim(self, name: str) -> Claim:
        """The claim of that name."""
        return Claim(self.world, self.namespace, name)

    def daemonset(self, name: str) -> DaemonSet:
        """The DaemonSet of that name."""
        return DaemonSet(self.world, self.namespace, name)

    def capture(self, into: Path) -> None:
        """Keep what an explanation may need, before it is deleted."""
        evidence.capture(self.world, self.namespace, into)


@contextlib.contextmanager
def opened(world: World, requirement: str) -> Iterator[Scenario]:
    """A new scenario in a namespace that nobody else has; all of it is deleted again, however the test ends."""
    name = f"dra-{requirement.lower()}-{secrets.token_hex(3)}"
    scenario = Scenario(world, name, Ledger(world.kube, name))
    try:
        for manifest in _home(world, name, requirement):
            scenario.ledger.apply(manifest)
        yield scenario
    finally:
        scenario.ledger.clean_up()


def _home(world: World, name: str, requirement: str) -> tuple[Object, Object]:
    labels = {TESTBED_LABEL: world.testbed, _REQUIREMENT_LABEL: requirement}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
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
    """The object in the scenario's namespace. Kinds without one are not for scenarios yet: they would outlive the test's own space."""
    if document["metadata"].get("namespace", namespace) != namespace:
        raise UsageError(f"{document['kind']} {document['metadata']['name']} names a namespace; a scenario has its own")
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}
