"""Replaces the installed release of the driver under test by the previous one, and back.

STATE/NAME/releases.json   the objects of both releases, as `up` rendered them
STATE/NAME/replaced.json   the test process that has replaced this release; the next session restores it after a kill
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed import state_files
from testbed.drivers.install import apply_objects
from testbed.errors import ApiError, UsageError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually

_FILE, _REPLACED = "releases.json", "replaced.json"
_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod")
# Each has fields that no request can change.
_REPLACEABLE = (*_WORKLOADS, "RoleBinding", "ClusterRoleBinding", "Service", "ConfigMap", "Secret", "CSIDriver")
# Deleting them would delete what others created with them, or what the tests refer to.
_STAYING = ("Namespace", "CustomResourceDefinition", "DeviceClass")
# The annotation that `kubectl rollout restart` sets: pods are replaced, also if both releases have the same template.
_REPLACED_AT = "kubectl.kubernetes.io/restartedAt"
_GONE = Budget("object deleted", 90, "a pod has a grace period of 30 s, and a DaemonSet waits for its pods")


@dataclass(frozen=True)
class Releases:
    """The objects of both releases of a driver, in the order in which they are applied."""

    driver: str
    current: list[Object]
    previous: list[Object]

    def write(self, folder: Path) -> None:
        """Write the objects into the folder of a testbed."""
        state_files.write(folder / _FILE, asdict(self))


def read(folder: Path) -> Releases:
    """Return the releases of a testbed. Raise UsageError if it was brought up with another driver file."""
    found = state_files.read(folder / _FILE, lambda content: Releases(**content))
    if found is None:
        raise UsageError(
            "the testbed was brought up without spec.install.previous, so it cannot install the previous release",
            hint="bring the testbed up again with this driver file",
        )
    return found


def replace_by_previous(kube: Kube, owner: Owner, folder: Path, process: str) -> None:
    """Apply the previous release. `process` is the test process, whose session must restore this release."""
    releases = read(folder)
    state_files.write(folder / _REPLACED, {"process": process})
    _delete(kube, owner, [each for each in _only_in(releases.current, releases.previous) if each["kind"] in _WORKLOADS])
    _apply(kube, owner, releases.driver, releases.previous)


def remove_what_previous_lacks(kube: Kube, owner: Owner, folder: Path) -> None:
    """Delete the objects that only this release has, once no pod of it runs. Classes, definitions and namespaces stay."""
    releases = read(folder)
    left = _only_in(releases.current, releases.previous)
    _delete(kube, owner, [each for each in left if each["kind"] not in _STAYING])


def replace_by_current(kube: Kube, owner: Owner, folder: Path) -> None:
    """Apply this release again."""
    releases = read(folder)
    _delete(kube, owner, [each for each in _only_in(releases.previous, releases.current) if each["kind"] in _WORKLOADS])
    _apply(kube, owner, releases.driver, releases.current)


def remove_what_current_lacks(kube: Kube, owner: Owner, folder: Path) -> None:
    """Delete the objects that only the previous release has, once no pod of it runs. Then the installation is as before."""
    releases = read(folder)
    _delete(kube, owner, _only_in(releases.previous, releases.current))
    (folder / _REPLACED).unlink(missing_ok=True)


def restore(kube: Kube, owner: Owner, folder: Path, driver_file: DriverFile, is_gone: Callable[[str], bool]) -> bool:
    """Install this release again if a process for which `is_gone` is True left the previous one. Return False if none did.

    All pods of the driver are deleted, whatever the update strategy, because no test runs.
    """
    process = state_files.read(folder / _REPLACED, lambda content: state_files.typed(content, "process", str))
    if process is None or not is_gone(process):
        return False
    replace_by_current(kube, owner, folder)
    pods = driver_file.pods
    for each in kube.list("v1", "Pod", pods.namespace, labelSelector=pods.selector):
        kube.delete(each)
    remove_what_current_lacks(kube, owner, folder)
    return True


def _apply(kube: Kube, owner: Owner, driver: str, objects: Iterable[Object]) -> None:
    """Apply objects one after another. Delete one first if it differs from the existing one in a field that cannot be changed."""
    for each in map(_with_new_pods, objects):
        try:
            apply_objects(kube, [each], driver, owner)
        except ApiError as refused:
            if refused.status != 422 or each["kind"] not in _REPLACEABLE:
                raise
            _delete(kube, owner, [each])
            apply_objects(kube, [each], driver, owner)


def _with_new_pods(manifest: Object) -> Object:
    """Return a DaemonSet with a template that replaces its pods once; any other object unchanged."""
    if manifest["kind"] != "DaemonSet":
        return manifest
    template = manifest["spec"]["template"]
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), _REPLACED_AT: secrets.token_hex(4)}
    changed = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**manifest, "spec": {**manifest["spec"], "template": changed}}


def _only_in(objects: Iterable[Object], others: Iterable[Object]) -> list[Object]:
    known = {_key(each) for each in others}
    return [each for each in objects if _key(each) not in known]


def _key(manifest: Object) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _delete(kube: Kube, owner: Owner, objects: Iterable[Object]) -> None:
    """Delete those of the objects that the testbed has created, last ones first, and wait until they are gone."""
    for each in reversed(list(objects)):
        metadata = each["metadata"]
        found = kube.find(each["apiVersion"], each["kind"], metadata["name"], metadata.get("namespace", "default"))
        if found and owner.owns(found):
            kube.delete(found, dependents_first=each["kind"] in _WORKLOADS)
            _wait_until_gone(kube, found)


def _wait_until_gone(kube: Kube, target: Object) -> None:
    metadata = target["metadata"]

    def gone() -> None:
        found = kube.find(target["apiVersion"], target["kind"], metadata["name"], metadata.get("namespace", "default"))
        if found and found["metadata"].get("uid") == metadata.get("uid"):
            raise NotYet(f"{target['kind']} {metadata['name']} still exists")

    eventually(gone, f"the deletion of {target['kind']} {metadata['name']}", _GONE, longest_pause=0.2)
