"""Waits until a driver is ready on every node where it must run: pods Ready, pools complete. Explains why it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from testbed.drivers.crashed_containers import container_statuses, find_crashes
from testbed.drivers.published.slices import Pool, pools
from testbed.drivers.published.taints import untolerated_taints
from testbed.errors import ApiError, DriverFailed, UsageError, WaitTimeout
from testbed.kube import messages
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually, holds_for

_READY = Budget(
    "driver ready", 60, "image, start, registration and slices take 3 s here; a vendor's driver probes hardware"
)
_LOST = Budget("driver's pods are found", 5, "the DaemonSet controller creates pods within a second")
_LOG_LINES = 15
_NO_SLICE, _NETWORK = "the pods are Ready, but there is no ResourceSlice for", "network-attached devices"
# Texts for states of containers that have no reason.
_STATE_TEXTS = {"running": "is running but not ready", "waiting": "is waiting", "terminated": "has terminated"}


class _SlicesMissing(NotYet):
    """The driver's pods are Ready, but its slices are missing or incomplete, which is the driver's own fault."""


KeptNodes = Mapping[str, Sequence[str]]


def wait_ready(kube: Kube, driver_file: DriverFile, nodes: Iterable[str] | None = None) -> None:
    """Wait until the driver's pod is Ready and a pool is complete on each of the nodes (default: all expected ones)."""
    wanted = frozenset(nodes) if nodes is not None else expected_nodes(kube, driver_file)
    if not wanted:
        _raise_no_nodes(kube, driver_file)
    what = f"driver {driver_file.driver} on {', '.join(sorted(wanted))}"
    try:
        eventually(_check_or_give_up(kube, driver_file, wanted), what, _READY, longest_pause=0.1)
    except WaitTimeout as late:
        raise _with_diagnosis(kube, driver_file, late) from late


def expected_nodes(kube: Kube, driver_file: DriverFile, kept: KeptNodes | None = None) -> frozenset[str]:
    """Return the nodes where the driver must run: those that `keep_expected_nodes` returned, or else those of now.

    Those of now are the nodes that the driver file selects, without those whose taints the tests' pods do not tolerate. The driver
    may be running already, so taints in its own domain do not count.
    """
    found = (kept or {}).get(_key(driver_file))
    return frozenset(found) if found is not None else _tolerated_nodes(kube, driver_file, driver_file.driver)


def keep_expected_nodes(kube: Kube, drivers: Iterable[DriverFile]) -> dict[str, list[str]]:
    """Return the nodes where each driver must run, for the testbed's record. Called before the drivers are installed.

    A node that a driver taints later, or on which it never starts, stays expected.
    """
    return {_key(each): sorted(_tolerated_nodes(kube, each, "" if each.install else each.driver)) for each in drivers}


def _key(driver_file: DriverFile) -> str:
    """Return a key that differs if the driver file selects other nodes."""
    return f"{driver_file.driver} {driver_file.nodes.model_dump_json()}"


def _tolerated_nodes(kube: Kube, driver_file: DriverFile, installed: str) -> frozenset[str]:
    selected, tolerations = _selected_nodes(kube, driver_file), driver_file.nodes.tolerations
    return frozenset(
        node["metadata"]["name"] for node in selected if not untolerated_taints(node, tolerations, installed)
    )


def _selected_nodes(kube: Kube, driver_file: DriverFile) -> list[Object]:
    labels = ",".join(f"{key}={value}" for key, value in _wanted_labels(driver_file).items())
    return kube.list("v1", "Node", **({"labelSelector": labels} if labels else {}))


def _wanted_labels(driver_file: DriverFile) -> dict[str, str]:
    return {**driver_file.nodes.selector, **driver_file.nodes.labels}


def _raise_no_nodes(kube: Kube, driver_file: DriverFile) -> None:
    """Raise UsageError: the driver file selects no node, or all selected nodes have taints."""
    selected, labels = _selected_nodes(kube, driver_file), _wanted_labels(driver_file)
    if not selected:
        wanted = ", ".join(f"{key}={value}" for key, value in labels.items())
        raise UsageError(
            f"driver {driver_file.driver} has no node to run on: "
            + (f"no node has the labels {wanted}" if labels else "the cluster has no nodes"),
            hint="compare spec.nodes.selector and spec.nodes.labels of the driver file with `kubectl get nodes --show-labels`",
        )
    taints = {node["metadata"]["name"]: _untolerated(node, driver_file) for node in selected}
    raise UsageError(
        f"driver {driver_file.driver} has no node to run on: the tests' pods do not tolerate the taints of its nodes\n"
        + "\n".join(f"  {name}: {', '.join(each)}" for name, each in sorted(taints.items())),
        hint="if tests may run there, add spec.nodes.tolerations to the driver file",
    )


def _untolerated(node: Object, driver_file: DriverFile) -> list[str]:
    return untolerated_taints(node, driver_file.nodes.tolerations)


def _check_or_give_up(kube: Kube, driver_file: DriverFile, wanted: frozenset[str]) -> Callable[[], None]:
    """Return a check that ends the wait if a driver publishes slices and has no pod: then spec.pods finds the wrong ones."""
    are_lost = holds_for(lambda: _require_slices_without_pods(kube, driver_file), _LOST.effective_seconds)

    def check() -> None:
        try:
            _check(kube, driver_file, wanted)
        except NotYet as seen:
            with contextlib.suppress(NotYet):
                are_lost()
                raise WaitTimeout(f"driver {driver_file.driver}", str(_LOST), str(seen)) from seen
            raise

    return check


def _require_slices_without_pods(kube: Kube, driver_file: DriverFile) -> None:
    """Raise NotYet if the driver has a pod, also one that ends while the driver is updated, or publishes nothing."""
    slices = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}")
    pods = driver_file.pods
    if not slices or kube.list("v1", "Pod", pods.namespace, labelSelector=pods.selector):
        raise NotYet("no slices without pods")


def _check(kube: Kube, driver_file: DriverFile, wanted: frozenset[str]) -> None:
    driver = driver_file.driver
    reasons = {pod["spec"].get("nodeName", ""): unready_reason(pod) for pod in driver_pods(kube, driver_file)}
    ready = {node for node, reason in reasons.items() if not reason}
    missing = [f"{node}: {reasons.get(node, 'no pod of the driver')}" for node in sorted(wanted - ready)]
    if missing:
        raise NotYet("; ".join(missing))
    found = pools(kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}"), driver)
    _check_pools(found, wanted if driver_file.are_devices_local else frozenset())


def _check_pools(found: list[Pool], wanted: frozenset[str]) -> None:
    """Raise NotYet unless all pools are complete and each of the wanted nodes has one. Without wanted nodes, one pool is enough."""
    incomplete = [str(pool) for pool in found if not pool.complete]
    if incomplete:
        raise _SlicesMissing("the pods are Ready, but " + "; ".join(incomplete))
    if not found:
        raise _SlicesMissing(f"{_NO_SLICE} {', '.join(sorted(wanted)) or _NETWORK}")
    # Pools of network-attached devices may be published first. Only the driver file says whether nodes get pools of their own.
    served = frozenset[str]().union(*(pool.nodes for pool in found))
    missing = wanted - served
    if missing and not served:
        raise NotYet(f"{_NO_SLICE} {', '.join(sorted(missing))}, only for {_NETWORK}")
    if missing:
        raise _SlicesMissing(f"{_NO_SLICE} {', '.join(sorted(missing))}")


def driver_pods(kube: Kube, driver_file: DriverFile) -> list[Object]:
    """Return the driver's pods that are not being deleted."""
    found = kube.list("v1", "Pod", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def unready_reason(pod: Object) -> str:
    """Return why a pod is not Ready, or '' if it is."""
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
    reasons = waiting or ([scheduled["message"]] if scheduled.get("message") else [])
    return f"pod {pod['metadata']['name']} is {status.get('phase', 'new')}: {'; '.join(reasons) or 'not Ready yet'}"


def _with_diagnosis(kube: Kube, driver_file: DriverFile, late: WaitTimeout) -> DriverFailed | WaitTimeout:
    """Return the timeout with crashes and logs: DriverFailed if the driver crashed or published no slices.

    Logs only explain. They do not decide who is blamed, because a correct driver logs too.
    """
    pods = driver_pods(kube, driver_file)
    unready = [pod for pod in pods if unready_reason(pod)]
    crashes = [crash for pod in unready for crash in find_crashes(pod)]
    logs = [lines for pod in unready or pods if (lines := log_tail(kube, driver_file, pod))]
    seen = "\n".join([late.last_seen, *(f"  {crash}" for crash in crashes)])
    text = "\n".join([seen, *logs])
    if any(crash.by_process for crash in crashes):
        return _failed(late, text, "the driver's own process fails: see its exit code and its log above")
    if isinstance(late.__cause__, _SlicesMissing):
        return _failed(late, text, _likely_cause(seen))
    return WaitTimeout(late.waited_for, late.budget, text, hint=_likely_cause(seen))


def _failed(late: WaitTimeout, text: str, hint: str) -> DriverFailed:
    return DriverFailed(f"{late.waited_for} did not become ready ({late.budget})\n  last seen: {text}", hint=hint)


def log_tail(kube: Kube, driver_file: DriverFile, pod: Object) -> str:
    """Return the last lines of the log of the container that the pod waits for; '' if it has none."""
    name, container = pod["metadata"]["name"], _awaited_container(pod, driver_file.pods.container)
    restarted = any(
        each.get("restartCount") and "running" not in each.get("state", {})
        for each in container_statuses(pod)
        if each["name"] == container
    )
    try:
        text = kube.logs(driver_file.pods.namespace, name, container=container, previous=restarted)
    except ApiError:
        return ""  # a container that never started has no log
    lines = text.strip().splitlines()[-_LOG_LINES:]
    of = f"container {container} of {name}" if container != driver_file.pods.container else name
    return "\n".join([f"  log of {of}:", *(f"    {line}" for line in lines)]) if lines else ""


def _awaited_container(pod: Object, usual: str) -> str:
    """Return the init container that has not ended well, for which all containers wait; otherwise the driver's own."""
    for each in pod.get("status", {}).get("initContainerStatuses", ()):
        ended = each.get("state", {}).get("terminated")
        is_sidecar = each.get("started") and each.get("ready")
        if not is_sidecar and (ended is None or ended.get("exitCode")):
            return str(each["name"])
    return usual


_IMAGE = (
    "the node could not pull the image: check its name, and that this host can reach the registry; "
    "or save the image as an archive and name that in spec.install.images of the driver file"
)
_NODE = "the node could not start the container, for the reason above: check the node's disk, and what the pod mounts and refers to"
_SLOW = "pulling a large image or probing hardware may need longer: try --patience 3; the pod's events say what it waits for"
# Hints by parts of what was seen. They do not decide who is blamed.
_CAUSES = {
    messages.IMAGE_ERROR: _IMAGE,
    messages.IMAGE_PULL: _IMAGE,
    "CreateContainer": _NODE,
    messages.RUN_CONTAINER_ERROR: _NODE,
    messages.START_ERROR: _NODE,
    "OOMKilled": "the container has no memory limit, so the node ran out of memory",
    "no pod of the driver": "check the DaemonSet's events, and spec.pods.selector and spec.nodes.selector of the driver file",
    f"only for {_NETWORK}": "if all devices are network-attached, set spec.devices.belongTo: network; otherwise see the log above",
    "no ResourceSlice": "the driver is Ready but publishes nothing: check its log above, its RBAC, and which hardware it finds",
    "slices of generation": "the driver published only a part of a pool: a generation must have resourceSliceCount slices",
    "ContainerCreating": _SLOW,
    "PodInitializing": _SLOW,
    "is running but not ready": "its readiness probe fails: is it registered with the kubelet? If it only needs longer, try --patience 3",
}


def _likely_cause(seen: str) -> str:
    return next((cause for text, cause in _CAUSES.items() if text in seen), "check the driver's pods")
