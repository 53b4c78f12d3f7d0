"""Reads from a cluster what it says about drivers: devices, classes, DaemonSets. Waits until a driver that was installed is ready."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from testbed.drivers.crashed_containers import find_crashes
from testbed.drivers.published.slices import pools
from testbed.drivers.ready import unready_reason
from testbed.errors import ApiError, DriverFailed, TestbedError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.onboarding.discovery.facts import ClusterFacts, DriverPods, PublishedDevice
from testbed.waiting import Budget, NotYet, eventually, holds_for

_RESOURCE = "resource.k8s.io/v1"
_READY = Budget("driver ready", 90, "a driver may pull its image, load kernel modules, and probe hardware and clouds")
_SETTLED = 3.0  # seconds without a change of the slices
_LOG_LINES = 15


def gather(kube: Kube) -> ClusterFacts:
    """Return what the cluster says about its drivers now."""
    slices = kube.list(_RESOURCE, "ResourceSlice")
    drivers = sorted({each["spec"]["driver"] for each in slices})
    devices = tuple(device for driver in drivers for device in _devices(slices, driver))
    classes = tuple(kube.list(_RESOURCE, "DeviceClass"))
    return ClusterFacts(devices, classes, _daemonsets(kube), tuple(kube.list("v1", "Node")), tuple(slices))


def wait_for_devices(kube: Kube, namespaces: Collection[str]) -> None:
    """Wait until the pods of the DaemonSets in these namespaces are Ready, and the ResourceSlices complete and unchanged for a while.

    Raise an error with states and logs of the pods if there is no ResourceSlice in time.
    """
    before: list[object] = []

    def settled() -> None:
        found = _check(kube, namespaces)
        if found not in before:
            before.append(found)
            raise NotYet("the ResourceSlices have just changed")

    try:
        eventually(holds_for(settled, _SETTLED), "devices of a driver", _READY, longest_pause=0.5)
    except WaitTimeout as late:
        if kube.list(_RESOURCE, "ResourceSlice"):
            return  # some of its pods may have nothing to publish
        raise _failure(kube, [each for each in _daemonsets(kube) if _is_in(each, namespaces)], late) from late


def _failure(kube: Kube, found: Collection[DriverPods], late: WaitTimeout) -> TestbedError:
    """Return why there is no ResourceSlice, with states and logs of the pods. The driver is blamed only if its own process ran."""
    pods = [pod for each in found for pod in each.pods]
    by_driver = pods and all(
        not unready_reason(pod) or any(each.by_process for each in find_crashes(pod)) for pod in pods
    )
    seen = [line for each in found for line in _describe(kube, each)]
    text = "\n".join([f"no driver published a ResourceSlice ({_READY})", f"  last seen: {late.last_seen}", *seen])
    if by_driver:
        return DriverFailed(
            text, hint="see the log above: which hardware, modules or permissions does the driver miss?"
        )
    return TestbedError(
        text,
        hint="for an image that the nodes cannot pull: dra-testbed images program BINARY --as NAME, and --image with the archive",
    )


def _check(kube: Kube, namespaces: Collection[str]) -> object:
    """Return what the slices say. Raise NotYet while pods are not Ready, or pools not complete."""
    found = [each for each in _daemonsets(kube) if _is_in(each, namespaces)]
    unready = [reason for each in found for pod in each.pods if (reason := unready_reason(pod))]
    if unready:
        raise NotYet("; ".join(unready))
    slices = kube.list(_RESOURCE, "ResourceSlice")
    if not slices:
        raise NotYet("the pods are Ready, but there is no ResourceSlice" if found else "no DaemonSet has pods")
    drivers = sorted({each["spec"]["driver"] for each in slices})
    incomplete = [str(pool) for driver in drivers for pool in pools(slices, driver) if not pool.complete]
    if incomplete:
        raise NotYet("; ".join(incomplete))
    return sorted((each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in slices)


def _devices(slices: Collection[Object], driver: str) -> Iterable[PublishedDevice]:
    for pool in pools(slices, driver):
        for part in pool.slices:
            for device in part["spec"].get("devices") or ():
                node = part["spec"].get("nodeName") or device.get("nodeName") or ""
                yield PublishedDevice(driver, pool.name, node, device)


def _daemonsets(kube: Kube) -> tuple[DriverPods, ...]:
    pods = kube.list("v1", "Pod")
    found = kube.list("apps/v1", "DaemonSet")
    return tuple(DriverPods(each, _pods_of(each, pods), _may_publish(kube, each)) for each in found)


def _pods_of(daemonset: Object, pods: Iterable[Object]) -> tuple[Object, ...]:
    uid = daemonset["metadata"]["uid"]
    owned = (pod for pod in pods if any(each["uid"] == uid for each in pod["metadata"].get("ownerReferences") or ()))
    return tuple(pod for pod in owned if not pod["metadata"].get("deletionTimestamp"))


def _may_publish(kube: Kube, daemonset: Object) -> bool:
    """Return True if the account of the pods may create ResourceSlices, also if this user may not ask."""
    namespace = daemonset["metadata"]["namespace"]
    account = daemonset["spec"]["template"]["spec"].get("serviceAccountName", "default")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "resourceAttributes": {"verb": "create", "group": "resource.k8s.io", "resource": "resourceslices"},
        },
    }
    try:
        answer = kube.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review)
    except ApiError:
        return True
    return bool(answer["status"].get("allowed"))


def _is_in(found: DriverPods, namespaces: Collection[str]) -> bool:
    return not namespaces or found.daemonset["metadata"]["namespace"] in namespaces


def _describe(kube: Kube, found: DriverPods) -> list[str]:
    """Return the state of each pod with the end of its log; why there is no pod."""
    metadata = found.daemonset["metadata"]
    if not found.pods:
        wanted = found.daemonset["spec"]["template"]["spec"].get("nodeSelector")
        return [f"  DaemonSet {metadata['name']} has no pods" + (f"; its nodeSelector is {wanted}" if wanted else "")]
    return [line for pod in found.pods for line in _describe_pod(kube, pod)]


def _describe_pod(kube: Kube, pod: Object) -> list[str]:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    lines = [f"  {unready_reason(pod) or f'pod {name} is Ready'}"]
    for each in pod["spec"]["containers"]:
        try:
            log = kube.logs(namespace, name, container=each["name"]).strip().splitlines()[-_LOG_LINES:]
        except ApiError:
            continue  # a container that never started has no log
        lines += [f"    {line}" for line in log]
    return lines
