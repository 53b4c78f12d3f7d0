"""Adjusts a vendor's objects to a testbed, and describes each change. Used by `install`. Pure."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence

from testbed.drivers.manifests import charts
from testbed.drivers.manifests.loaded_images import unused_images, use_loaded_images
from testbed.drivers.manifests.order import in_order
from testbed.drivers.manifests.pods import pod_specs
from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile


def adjust(
    objects: Sequence[Object], driver_file: DriverFile, loaded: Collection[str]
) -> tuple[list[Object], list[str]]:
    """Return the objects as they are applied, in their order, and a line for each change of what the vendor wrote."""
    install, namespace = driver_file.install, driver_file.pods.namespace
    changes: list[str] = []
    if install and install.chart:
        changes += [
            f"{_name(each)} is left out, a hook that installing does not run"
            for each in objects
            if charts.is_left_out(each)
        ]
        objects = charts.as_installed(objects, namespace)
    adjusted, of_images = use_loaded_images(objects, loaded)
    changes += of_images
    changes += [f"the loaded image {each} is used by no container" for each in unused_images(adjusted, loaded)]
    if install and install.pull_secret:
        adjusted, of_secret = _with_pull_secret(adjusted, install.pull_secret, namespace)
        changes += of_secret
    return in_order(adjusted), changes


def _with_pull_secret(objects: Iterable[Object], secret: str, namespace: str) -> tuple[list[Object], list[str]]:
    """Return the objects with the Secret in the pods of the driver's namespace that do not have it."""
    changed, changes = [], []
    for each in objects:
        made = copy.deepcopy(each)
        for spec in pod_specs(made) if made["metadata"].get("namespace", "default") == namespace else ():
            known = spec.get("imagePullSecrets") or []
            if {"name": secret} not in known:
                spec["imagePullSecrets"] = [*known, {"name": secret}]
                changes.append(f"{_name(each)}: imagePullSecrets has {secret}")
        changed.append(made)
    return changed, changes


def _name(found: Object) -> str:
    return f"{found['kind']} {found['metadata']['name']}"
