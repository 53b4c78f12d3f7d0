"""Apply a driver's manifests, in the order of its driver file, and remove them in the reverse order."""

from __future__ import annotations

from pathlib import Path

import yaml

from testbed import folders
from testbed.errors import TestbedError, UsageError
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile
from testbed.rendering import render_file
from testbed.waiting import Budget, NotYet, eventually

_GONE = Budget("driver gone", 60, "a driver gets a grace period to unregister and clean up")


def install(kube: Kube, driver_file: DriverFile, *, image: str = "", hardware: Path | None = None) -> None:
    """Apply all manifests. A driver file without `install` means that somebody has done it already."""
    for manifest in _manifests(driver_file, image, hardware):
        kube.apply(manifest)


def uninstall(kube: Kube, driver_file: DriverFile, *, image: str = "", hardware: Path | None = None) -> None:
    """Delete what `install` applied, last first, and wait until the driver's pods are gone. Twice is fine."""
    for manifest in reversed(_manifests(driver_file, image, hardware)):
        kube.delete(manifest)
    if driver_file.install:
        eventually(lambda: _no_pods(kube, driver_file), f"the end of driver {driver_file.driver}", _GONE)


def _manifests(driver_file: DriverFile, image: str, hardware: Path | None) -> list[Object]:
    if driver_file.install is None:
        return []
    shipped = folders.data("manifests") / "hardware" / "gpus.yaml"
    variables: dict[str, object] = {
        "driver_name": driver_file.driver,
        "namespace": driver_file.pods.namespace,
        "hardware": (hardware or shipped).read_text(),
        **({"image": image} if image else {}),
        **driver_file.install.variables,
    }
    return [each for path in driver_file.install.manifests for each in _rendered(path, variables)]


def _rendered(path: Path, variables: dict[str, object]) -> list[Object]:
    try:
        documents = list(yaml.safe_load_all(render_file(path, variables, allow_unused=True)))
    except yaml.YAMLError as broken:
        raise UsageError(f"{path} is not YAML once its variables are filled in: {broken}") from broken
    found = [document for document in documents if document]
    for document in found:
        if not isinstance(document, dict) or not document.get("kind") or not document.get("metadata", {}).get("name"):
            raise TestbedError(f"{path} holds something that is not a Kubernetes object: {document!r:.80}")
    return found


def _no_pods(kube: Kube, driver_file: DriverFile) -> None:
    left = kube.list("v1", "Pod", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    if left:
        raise NotYet("still there: " + ", ".join(pod["metadata"]["name"] for pod in left))
