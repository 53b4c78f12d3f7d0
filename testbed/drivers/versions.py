"""Finds which images a driver's pods run, so that reports say what was judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from testbed.drivers.crashed_containers import container_statuses
from testbed.drivers.manifests.pods import containers
from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile

_FORBIDDEN = 403


def images_of(kube: Kube, drivers: Iterable[DriverFile]) -> dict[str, dict[str, str]]:
    """Return the images of each driver's pods with the IDs that the nodes report. Several IDs mean that nodes run different images."""
    return {each.driver: _images(_pods(kube, each)) for each in drivers}


def _pods(kube: Kube, driver_file: DriverFile) -> list[Object]:
    try:
        return driver_pods(kube, driver_file)
    except ApiError as refused:  # a run that may only read may not read the driver's namespace
        if refused.status != _FORBIDDEN:
            raise
        return []


def _images(pods: Iterable[Object]) -> dict[str, str]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        ids = {each["name"]: str(each.get("imageID") or "") for each in container_statuses(pod)}
        for each in containers(pod.get("spec") or {}):
            if known := ids.get(each["name"]):
                found[str(each.get("image", ""))].add(known)
    return {image: ", ".join(sorted(ids)) for image, ids in sorted(found.items())}
