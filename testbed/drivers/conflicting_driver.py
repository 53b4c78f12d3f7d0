"""Is a driver of that name there already, put there by somebody else? Asked before one is installed in a cluster that is not ours."""

from __future__ import annotations

from testbed.drivers.ready import driver_pods
from testbed.errors import UsageError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import identity_of, is_ours, owner_of
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually

_WIPED = Budget("old slices gone", 60, "a kubelet removes the slices of a driver that left after 30 s")


def refuse_conflicting_driver(kube: Kube, driver_file: DriverFile) -> None:
    """Nothing of that driver may be there: neither its class, nor its pods, nor its slices. Slices that are left of one are waited out."""
    if driver_file.install is None:
        return
    device_class = kube.find("resource.k8s.io/v1", "DeviceClass", driver_file.device_class)
    if device_class:
        raise _conflict(driver_file, f"DeviceClass {driver_file.device_class} is there", [device_class])
    pods = driver_pods(kube, driver_file)
    if pods:
        names = ", ".join(f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in pods)
        raise _conflict(driver_file, f"pods {names} are there", pods)
    try:
        eventually(lambda: _no_slices(kube, driver_file.driver), f"no slices of {driver_file.driver}", _WIPED)
    except WaitTimeout as late:
        raise _conflict(driver_file, late.last_seen, []) from late


def _no_slices(kube: Kube, driver: str) -> None:
    found = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}")
    if found:
        nodes = sorted({str(each["spec"].get("nodeName") or "the network") for each in found})
        raise NotYet(f"it has ResourceSlices for {', '.join(nodes)}")


def _conflict(driver_file: DriverFile, what: str, found: list[Object]) -> UsageError:
    said = f"the cluster has a driver {driver_file.driver} already: {what}"
    if found and is_ours(found[0]):
        whose = owner_of(found) or f"a testbed with the id {identity_of(found[0])}"
        return UsageError(
            f"{said}, and belongs to {whose}",
            hint="wait until it is gone; dra-testbed sweep --kubeconfig removes remains",
        )
    return UsageError(
        f"{said}, and dra-testbed did not install it",
        hint="a driver that somebody else has installed is judged with a driver file without spec.install",
    )
