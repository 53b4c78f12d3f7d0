"""What of a driver is not there: slices and devices of its nodes, its pods. Said before the tests, and of pods that get no device.

Nobody is blamed by it: a driver that runs as no pod has none, and one without hardware publishes no device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testbed.drivers.ready import driver_pods, expected_nodes, unready_reason
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile


def find_missing(kube: Kube, driver_file: DriverFile) -> list[str]:
    """A line for each thing that is missing on the nodes where the driver is expected."""
    nodes = expected_nodes(kube, driver_file)
    return [*missing_devices(kube, driver_file, nodes), *missing_pods(kube, driver_file, nodes)]


def missing_devices(kube: Kube, driver_file: DriverFile, nodes: Iterable[str]) -> Iterator[str]:
    """The nodes that have no ResourceSlice, or none with a device in it; a driver whose devices belong to the network needs one at all."""
    slices = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    wanted = set(nodes) if driver_file.nodes.own_slices else {""}
    bare = wanted - _nodes(slices)
    empty = wanted - bare - _nodes(each for each in slices if each["spec"].get("devices"))
    for what, which in (("ResourceSlice", bare), ("device", empty)):
        if which:
            yield f"{driver_file.driver} publishes no {what}{_on(which)}"


def missing_pods(kube: Kube, driver_file: DriverFile, nodes: Iterable[str]) -> Iterator[str]:
    """The nodes without a pod of the driver, and the pods there that are not ready."""
    pods, wanted = driver_pods(kube, driver_file), set(nodes)
    lacking = wanted - {pod["spec"].get("nodeName") for pod in pods}
    if lacking:
        yield f"{no_pod_message(driver_file)} is {_on(lacking).strip() if pods else 'there'}"
    for pod in pods:
        why = unready_reason(pod) if pod["spec"].get("nodeName") in wanted else ""
        if why:
            yield f"the driver's {why}"


def no_pod_message(driver_file: DriverFile) -> str:
    """Where its pods were looked for."""
    return f"no pod of the driver ({driver_file.pods.selector} in namespace {driver_file.pods.namespace})"


def _nodes(slices: Iterable[Object]) -> set[str]:
    """The nodes of slices, and '' for them all."""
    return {node for each in slices for node in (each["spec"].get("nodeName", ""), "")}


def _on(nodes: Iterable[str]) -> str:
    names = " and ".join(sorted(nodes))
    return f" on {names}" if names else ""
