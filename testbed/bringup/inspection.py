"""Look at a cluster that is not ours before anything is made in it: what would fail later is said now. For `up`, `run` and `--plan`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.drivers import manifests_together, refuse_foreign
from testbed.errors import TestbedError, UsageError
from testbed.images.driver import cached
from testbed.kube import rights
from testbed.kube.client import Kube, Object, missing_ok
from testbed.kube.rights import Right
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile
from testbed.providers.base import Capability, Cluster, ClusterSpec, FindsClusters

_INSTALL = ("get", "create", "patch", "delete")
_LISTED_IMAGES = 50  # a node tells of its largest ones only, so many that a small one may be left out
_UNPULLABLE = "localhost/"


@dataclass(frozen=True)
class Look:
    """The cluster as it was found."""

    cluster: Cluster
    kube: Kube


def look_at(provider: FindsClusters, spec: ClusterSpec) -> Look:
    """The cluster; nothing of it is kept."""
    return Look(*provider.find(spec))


def refuse_what_will_fail(look: Look, config: TestbedConfig, drivers: Sequence[DriverFile], workload: str) -> list[str]:
    """Somebody else's driver of that name, rights that its installation lacks. What may go well all the same comes back as remarks."""
    if Capability.MAKE_OBJECTS not in look.cluster.capabilities:
        _refuse_idle_hardware(config)
        return []
    needed = [workload]
    if any(each.install for each in drivers):
        image = driver_image(config, drivers)
        needed += [image] if image else []
        for each in drivers:
            refuse_foreign(look.kube, each)
        _refuse_without_rights(look.kube, manifests_together(drivers, image=image, hardware=config.hardware))
    return _unseen_images(look.kube, [each for each in needed if each.startswith(_UNPULLABLE)])


def driver_image(config: TestbedConfig, drivers: Sequence[DriverFile]) -> str:
    """The image that the drivers' manifests get: nobody loads one here, so it has to be known and there."""
    needing = [each.name for each in drivers if each.install and each.install.built_in_image]
    if not needing:
        return ""
    made = cached()
    if config.images.driver or made:
        return config.images.driver or (made.reference if made else "")
    raise UsageError(
        f"driver {needing[0]} needs an image that the cluster has or can pull",
        hint="--driver-image IMAGE; or dra-testbed images build driver, and load that archive into the nodes",
    )


def install_rights(kube: Kube, objects: Iterable[Object]) -> list[Right]:
    """What the installation of these objects needs. Kinds that the API server does not know yet are left out: a manifest brings them."""
    found: set[Right] = set()
    for each in objects:
        with contextlib.suppress(UsageError), missing_ok():
            resource = kube.resource(each["apiVersion"], each["kind"])
            group = each["apiVersion"].rpartition("/")[0]
            home = str(each["metadata"].get("namespace", "default")) if resource.namespaced else ""
            found |= {Right(verb, group, resource.plural, home) for verb in _INSTALL}
            found.add(Right("list", group, resource.plural))  # `down` finds by labels, in whatever namespace
    return sorted(found)


def _refuse_without_rights(kube: Kube, objects: Sequence[Object]) -> None:
    lacking = rights.missing(kube, install_rights(kube, objects))
    if lacking:
        raise TestbedError(
            "this user may not install the driver:\n" + "\n".join(f"    {line}" for line in rights.summary(lacking)),
            hint="use an administrator's kubeconfig; or have the driver installed, and judge it with a driver file without spec.install",
        )


def _refuse_idle_hardware(config: TestbedConfig) -> None:
    if config.hardware:
        raise UsageError(
            f"--hardware {config.hardware} means nothing where no driver may be installed",
            hint="leave it out, or --allow workloads",
        )


def _unseen_images(kube: Kube, needed: Iterable[str]) -> list[str]:
    """Images that no registry has and no node tells of. Only a remark: a kubelet tells of a new image after up to 40 s."""
    nodes = kube.list("v1", "Node")
    unseen = [image for image in needed if all(_surely_lacks(node, image) for node in nodes)]
    cure = "--workload-image and --driver-image name others, or load the archives of `dra-testbed images list -o json`"
    return [f"no node tells of image {image}, and no registry has it: {cure}" for image in unseen]


def _surely_lacks(node: Object, image: str) -> bool:
    images = node.get("status", {}).get("images") or ()
    names = {name for each in images for name in each.get("names") or ()}
    return len(images) < _LISTED_IMAGES and image not in names
