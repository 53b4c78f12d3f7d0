"""Finds missing slices, devices and pods of a driver, for notes before a run and for pods that get no device.

This blames no driver: one that does not run as a pod has no pods, and one without hardware publishes no devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testbed.drivers.ready import KeptNodes, driver_pods, expected_nodes, unready_reason
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile


def find_missing(kube: Kube, driver_file: DriverFile, kept: KeptNodes | None = None) -> list[str]:
    """Return a line for each thing that is missing on the nodes where the driver must run."""
    nodes = expected_nodes(kube, driver_file, kept)
    return [*missing_devices(kube, driver_file, nodes), *missing_pods(kube, driver_file, nodes)]


def missing_devices(kube: Kube, driver_file: DriverFile, nodes: Iterable[str]) -> Iterator[str]:
    """Yield a line for nodes without a ResourceSlice or device. A driver of network-attached devices needs just one slice."""
    slices = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    wanted = set(nodes) if driver_file.are_devices_local else {""}
    without_slice = wanted - _nodes(slices)
    without_device = wanted - without_slice - _nodes(each for each in slices if each["spec"].get("devices"))
    for what, where in (("ResourceSlice", without_slice), ("device", without_device)):
        if where:
            yield f"{driver_file.driver} publishes no {what}{_on(where)}"


def missing_pods(kube: Kube, driver_file: DriverFile, nodes: Iterable[str]) -> Iterator[str]:
    """Yield a line for nodes without a pod of the driver, and for each pod there that is not ready."""
    pods, wanted = driver_pods(kube, driver_file), set(nodes)
    without_pod = wanted - {pod["spec"].get("nodeName") for pod in pods}
    if without_pod:
        yield f"{no_pod_message(driver_file)} exists{_on(without_pod) if pods else ''}"
    for pod in pods:
        reason = unready_reason(pod) if pod["spec"].get("nodeName") in wanted else ""
        if reason:
            yield f"the driver's {reason}"


def no_pod_message(driver_file: DriverFile) -> str:
    """Return the beginning of a message that the driver has no pod, with selector and namespace."""
    return f"no pod of the driver ({driver_file.pods.selector} in namespace {driver_file.pods.namespace})"


def _nodes(slices: Iterable[Object]) -> set[str]:
    """Return the nodes of slices, and '' if there is any slice."""
    return {node for each in slices for node in (each["spec"].get("nodeName", ""), "")}


def _on(nodes: Iterable[str]) -> str:
    names = " and ".join(sorted(nodes))
    return f" on {names}" if names else ""
