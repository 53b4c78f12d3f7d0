"""Checks in an existing cluster before anything is created in it, so that `up`, `run` and `--plan` report early what would fail later."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from testbed import folders
from testbed.bringup.resolved_config import ResolvedConfig
from testbed.drivers import all_manifests, refuse_conflicting_driver
from testbed.drivers.companions import loaded_images
from testbed.errors import TestbedError, UsageError
from testbed.images.driver import cached
from testbed.kube import permissions
from testbed.kube.client import Kube, Object, missing_ok
from testbed.kube.permissions import Permission
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile
from testbed.providers.base import Capability, FoundCluster

_INSTALL = ("get", "create", "patch", "delete")
_LISTED_IMAGES = 50  # a node's status lists only its largest images, at most this many: a small one may be missing
_UNPULLABLE = "localhost/"


def check_before_install(found: FoundCluster, resolved: ResolvedConfig) -> list[str]:
    """Raise an error for a driver of that name that is not ours, and for missing permissions. Return what may fail, as remarks."""
    config, drivers = resolved.config, resolved.drivers
    if Capability.MAKE_OBJECTS not in found.cluster.capabilities:
        _refuse_unused_hardware(config)
        return []
    _refuse_without_pull_secret(found.kube, drivers)
    images = [resolved.spec.workload_image, *(each.probe.image for each in drivers[:1] if each.probe.image)]
    if any(each.install for each in drivers):
        image = driver_image(resolved)
        images += [image] if image else []
        for each in drivers:
            refuse_conflicting_driver(found.kube, each)
        _refuse_without_permissions(found.kube, all_manifests(drivers, image=image, hardware=config.hardware))
    loaded = [name for each in drivers for name in loaded_images(each)]
    return [
        *_missing_images(found.kube, [each for each in images if each.startswith(_UNPULLABLE)]),
        *(
            f"image {each} of the driver file is not loaded: the cluster must have it or pull it"
            for each in dict.fromkeys(loaded)
        ),
    ]


def driver_image(resolved: ResolvedConfig) -> str:
    """Return the image for the drivers' manifests; '' if they need none. Raise UsageError if it is neither given nor built before."""
    needing = [each.name for each in resolved.drivers if each.install and each.install.built_in_image]
    if not needing:
        return ""
    given, built = resolved.config.images.driver, cached()
    if given or built:
        return given or (built.reference if built else "")
    raise UsageError(
        f"driver {needing[0]} needs an image that the cluster has or can pull",
        hint="--driver-image IMAGE; or dra-testbed images build driver, and load that archive into the nodes",
    )


def install_permissions(kube: Kube, objects: Iterable[Object]) -> list[Permission]:
    """Return the permissions that installing these objects needs. Skip kinds that are not served yet: a manifest defines them."""
    found: set[Permission] = set()
    for each in objects:
        with contextlib.suppress(UsageError), missing_ok():
            resource = kube.resource(each["apiVersion"], each["kind"])
            group = each["apiVersion"].rpartition("/")[0]
            namespace = str(each["metadata"].get("namespace", "default")) if resource.namespaced else ""
            found |= {Permission(verb, group, resource.plural, namespace) for verb in _INSTALL}
            found.add(Permission("list", group, resource.plural))  # `down` finds objects by label, in all namespaces
    return sorted(found)


def pull_secret_permissions(drivers: Iterable[DriverFile]) -> list[Permission]:
    """Return the permissions to copy the drivers' pull secrets into the namespaces of tests; none if there is no pull secret."""
    is_used = any(each.pull_secret for each in drivers)
    return [Permission(verb, "", "secrets") for verb in ("create", "patch", "delete")] if is_used else []


def _refuse_without_pull_secret(kube: Kube, drivers: Iterable[DriverFile]) -> None:
    lacking = permissions.missing_permissions(kube, pull_secret_permissions(drivers))
    if lacking:
        raise TestbedError(
            "this user may not copy the Secret of spec.install.pullSecret into the namespaces of tests; missing permissions:\n"
            + "\n".join(f"    {line}" for line in permissions.summarize(lacking)),
            hint=f"let an administrator apply {folders.data('manifests') / 'clusters' / 'judge-pull-secret.yaml'}, and bind it to the user",
        )


def _refuse_without_permissions(kube: Kube, objects: Sequence[Object]) -> None:
    lacking = permissions.missing_permissions(kube, install_permissions(kube, objects))
    if lacking:
        raise TestbedError(
            "this user may not install the driver; missing permissions:\n"
            + "\n".join(f"    {line}" for line in permissions.summarize(lacking)),
            hint="use an administrator's kubeconfig; or have the driver installed, and use a driver file without spec.install",
        )


def _refuse_unused_hardware(config: TestbedConfig) -> None:
    if config.hardware:
        raise UsageError(
            f"--hardware {config.hardware} has no effect with --allow read-only: no driver is installed",
            hint="omit --hardware, or use --allow workloads",
        )


def _missing_images(kube: Kube, images: Iterable[str]) -> list[str]:
    """Return a remark for each image that no node lists. It is no error: a kubelet reports a new image up to 40 s later."""
    nodes = kube.list("v1", "Node")
    missing = [image for image in images if all(_surely_lacks(node, image) for node in nodes)]
    cure = "--workload-image and --driver-image name others, or load the archives of `dra-testbed images list -o json`"
    return [f"no node lists image {image}, and it cannot be pulled from a registry: {cure}" for image in missing]


def _surely_lacks(node: Object, image: str) -> bool:
    images = node.get("status", {}).get("images") or ()
    names = {name for each in images for name in each.get("names") or ()}
    return len(images) < _LISTED_IMAGES and image not in names
