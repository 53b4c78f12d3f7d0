"""Refuses to install a driver that an existing cluster already has."""

from __future__ import annotations

from testbed.drivers.ready import driver_pods
from testbed.errors import UsageError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import identity_of, is_ours, owner_of
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually

_WIPED = Budget("stale slices gone", 60, "a kubelet removes the slices of a stopped driver after 30 s")


def refuse_conflicting_driver(kube: Kube, driver_file: DriverFile) -> None:
    """Raise UsageError if the driver's DeviceClass, pods or ResourceSlices exist. Stale slices get time to disappear."""
    if driver_file.install is None:
        return
    device_class = kube.find("resource.k8s.io/v1", "DeviceClass", driver_file.device_class)
    if device_class:
        raise _conflict(driver_file, f"DeviceClass {driver_file.device_class} exists", [device_class])
    pods = driver_pods(kube, driver_file)
    if pods:
        names = ", ".join(f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in pods)
        raise _conflict(driver_file, f"its pods {names} exist", pods)
    try:
        eventually(lambda: _no_slices(kube, driver_file.driver), f"no slices of {driver_file.driver}", _WIPED)
    except WaitTimeout as late:
        raise _conflict(driver_file, late.last_seen, []) from late


def _no_slices(kube: Kube, driver: str) -> None:
    found = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}")
    if found:
        nodes = sorted({str(each["spec"].get("nodeName") or "network-attached devices") for each in found})
        raise NotYet(f"it has ResourceSlices for {', '.join(nodes)}")


def _conflict(driver_file: DriverFile, what: str, found: list[Object]) -> UsageError:
    message = f"driver {driver_file.driver} is already in the cluster: {what}"
    if found and is_ours(found[0]):
        owner = owner_of(found) or f"a testbed with the id {identity_of(found[0])}"
        return UsageError(
            f"{message}, and it belongs to {owner}",
            hint="wait until that testbed is removed; dra-testbed sweep --kubeconfig removes abandoned ones",
        )
    return UsageError(
        f"{message}, and dra-testbed did not install it",
        hint="to judge a driver that is already installed, use a driver file without spec.install",
    )
