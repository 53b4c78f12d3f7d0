"""Wait until a driver serves on every node where it is expected: pods Ready, pools complete. Says why not, when it does not."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.drivers.crashed_containers import container_statuses, find_crashes
from testbed.drivers.published.slices import Pool, pools
from testbed.drivers.published.taints import untolerated_taints
from testbed.errors import ApiError, DriverFailed, UsageError, WaitTimeout
from testbed.kube import messages
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually

_READY = Budget(
    "driver ready", 60, "image, start, registration and slices take 3 s here; a vendor's driver probes hardware"
)
_LOG_LINES = 15
_NO_SLICE = "the pods are Ready, but there is no ResourceSlice for"
_STATE_TEXTS = {
    "running": "runs and is not ready",
    "waiting": "waits",
    "terminated": "ended",
}  # a state without a reason


class _SlicesMissing(NotYet):
    """The driver says that it serves, and its slices are not there. Nobody but the driver can give them."""


def wait_ready(kube: Kube, driver_file: DriverFile, nodes: Iterable[str] | None = None) -> None:
    """Return when the driver's pod is Ready and a pool is complete on each of the nodes (all expected ones, if not given)."""
    wanted = frozenset(nodes) if nodes is not None else expected_nodes(kube, driver_file)
    if not wanted:
        _raise_no_nodes(kube, driver_file)
    what = f"driver {driver_file.driver} on {', '.join(sorted(wanted))}"
    try:
        eventually(lambda: _check(kube, driver_file, wanted), what, _READY, longest_pause=0.1)
    except WaitTimeout as late:
        raise _with_diagnosis(kube, driver_file, late) from late


def expected_nodes(kube: Kube, driver_file: DriverFile) -> frozenset[str]:
    """The nodes that the driver file's selector names, without those that keep the tests' pods away."""
    found = _selected_nodes(kube, driver_file)
    return frozenset(node["metadata"]["name"] for node in found if not _untolerated(node, driver_file))


def _selected_nodes(kube: Kube, driver_file: DriverFile) -> list[Object]:
    labels = ",".join(f"{key}={value}" for key, value in driver_file.nodes.selector.items())
    return kube.list("v1", "Node", **({"labelSelector": labels} if labels else {}))


def _raise_no_nodes(kube: Kube, driver_file: DriverFile) -> None:
    """Without any node nothing is worth waiting for: what is wrong stands in the driver file, or in the nodes' taints."""
    labelled, labels = _selected_nodes(kube, driver_file), driver_file.nodes.selector
    if not labelled:
        wanted = ", ".join(f"{key}={value}" for key, value in labels.items())
        raise UsageError(
            f"driver {driver_file.driver} is expected on no node: "
            + (f"none has the labels {wanted}" if labels else "the cluster has none"),
            hint="look at spec.nodes.selector of the driver file, and at `kubectl get nodes --show-labels`",
        )
    kept = {node["metadata"]["name"]: _untolerated(node, driver_file) for node in labelled}
    raise UsageError(
        f"driver {driver_file.driver} is expected on no node: taints keep the tests' pods from all that there are\n"
        + "\n".join(f"  {name}: {', '.join(taints)}" for name, taints in sorted(kept.items())),
        hint="if the tests may run there, tolerate them with spec.nodes.tolerations of the driver file",
    )


def _untolerated(node: Object, driver_file: DriverFile) -> list[str]:
    return untolerated_taints(node, driver_file.nodes.tolerations)


def _check(kube: Kube, driver_file: DriverFile, wanted: frozenset[str]) -> None:
    driver = driver_file.driver
    pods = {pod["spec"].get("nodeName", ""): unready_reason(pod) for pod in driver_pods(kube, driver_file)}
    running = {node for node, why in pods.items() if not why}
    missing = [f"{node}: {pods.get(node, 'no pod of the driver')}" for node in sorted(wanted - running)]
    if missing:
        raise NotYet("; ".join(missing))
    found = pools(kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}"), driver)
    _check_pools(found, wanted if driver_file.nodes.own_slices else frozenset())


def _check_pools(found: list[Pool], wanted: frozenset[str]) -> None:
    """All pools are complete, and each of the wanted nodes has one; a driver of which none is wanted has one at all."""
    partly = [str(pool) for pool in found if not pool.complete]
    if partly:
        raise _SlicesMissing("the pods are Ready, but " + "; ".join(partly))
    if not found:
        raise _SlicesMissing(f"{_NO_SLICE} {', '.join(sorted(wanted)) or 'the network'}")
    # The network's pools may come first, so they say nothing of the nodes' own: whether there will be any stands in the driver file.
    served = frozenset[str]().union(*(pool.nodes for pool in found))
    bare = wanted - served
    if bare and not served:
        raise NotYet(f"{_NO_SLICE} {', '.join(sorted(bare))}, only for the network")
    if bare:
        raise _SlicesMissing(f"{_NO_SLICE} {', '.join(sorted(bare))}")


def driver_pods(kube: Kube, driver_file: DriverFile) -> list[Object]:
    """The driver's pods that are not on their way out."""
    found = kube.list("v1", "Pod", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def unready_reason(pod: Object) -> str:
    """Why a pod is not Ready; '' when it is."""
    status = pod.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    waiting = [
        f"container {each['name']} {state.get('reason', _STATE_TEXTS[kind])} {state.get('message', '')}".strip()
        for each in container_statuses(pod)
        for kind, state in each.get("state", {}).items()
        if kind != "running" or not each.get("ready")
    ]
    scheduled = conditions.get("PodScheduled", {})
    why = waiting or ([scheduled["message"]] if scheduled.get("message") else [])
    return f"pod {pod['metadata']['name']} is {status.get('phase', 'new')}: {'; '.join(why) or 'not Ready yet'}"


def _with_diagnosis(kube: Kube, driver_file: DriverFile, late: WaitTimeout) -> DriverFailed | WaitTimeout:
    """The same time-out with the driver's last words. What it did itself is its own fault; a pod that never started is ours.

    Logs explain and blame nobody: who speaks may be well, and who is silent need not be.
    """
    pods = driver_pods(kube, driver_file)
    unready = [pod for pod in pods if unready_reason(pod)]
    endings = [ending for pod in unready for ending in find_crashes(pod)]
    spoken = [lines for pod in unready or pods if (lines := _log_tail(kube, driver_file, pod))]
    seen = "\n".join([late.last_seen, *(f"  {ending}" for ending in endings)])
    text = "\n".join([seen, *spoken])
    if any(ending.own for ending in endings):
        return _failed(late, text, "the driver ends by itself: look at its exit code and its log above")
    if isinstance(late.__cause__, _SlicesMissing):
        return _failed(late, text, _likely_cause(seen))
    return WaitTimeout(late.waited_for, late.budget, text, hint=_likely_cause(seen))


def _failed(late: WaitTimeout, text: str, hint: str) -> DriverFailed:
    return DriverFailed(f"{late.waited_for} did not come up ({late.budget})\n  last seen: {text}", hint=hint)


def _log_tail(kube: Kube, driver_file: DriverFile, pod: Object) -> str:
    name = pod["metadata"]["name"]
    restarted = any(
        each.get("restartCount") and "running" not in each.get("state", {}) for each in container_statuses(pod)
    )
    try:
        text = kube.logs(driver_file.pods.namespace, name, container=driver_file.pods.container, previous=restarted)
    except ApiError:
        return ""  # a container that never started has no log, and the time-out is the news
    lines = text.strip().splitlines()[-_LOG_LINES:]
    return "\n".join([f"  log of {name}:", *(f"    {line}" for line in lines)]) if lines else ""


_IMAGE = (
    "the node could not get the image: can this host reach the image's registry, and is its name right? "
    "Otherwise save it as an archive, and name that in spec.install.images of the driver file"
)
_NODE = "the node could not start the container, and says above why: look at its disk, and at what the pod mounts and refers to"
_SLOW = "a large image, or hardware that is looked at, may only need longer: --patience 3; the pod's events say what it waits for"
# What to try, by words of what was seen. Nobody is blamed by it.
_CAUSES = {
    messages.IMAGE_ERROR: _IMAGE,
    messages.IMAGE_PULL: _IMAGE,
    "CreateContainer": _NODE,
    "RunContainerError": _NODE,
    "StartError": _NODE,
    "OOMKilled": "the container has no memory limit, so it was the node that had no more memory",
    "no pod of the driver": "look at the DaemonSet's events, and at spec.pods.selector and spec.nodes.selector of the driver file",
    "only for the network": "if it has no devices of nodes, its driver file says so (spec.nodes.ownSlices: false); else its log above",
    "no ResourceSlice": "the driver is Ready but published nothing: its log above, its RBAC, and what hardware it found",
    "slices of generation": "the driver published only a part of a pool: resourceSliceCount and generation must agree",
    "ContainerCreating": _SLOW,
    "PodInitializing": _SLOW,
    "runs and is not ready": "its readiness probe fails: is it registered with the kubelet? If it only needs longer: --patience 3",
}


def _likely_cause(seen: str) -> str:
    return next((cause for word, cause in _CAUSES.items() if word in seen), "look at the driver's pods")
