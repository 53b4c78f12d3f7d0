"""Diagnose a pod or a claim from its events, its node, the driver's slices and pods, and the claims of others. For failed waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from testbed.drivers.missing import missing_devices, missing_pods
from testbed.drivers.published.holders import devices_held_by_others, held_devices, summarize
from testbed.drivers.published.slices import pools, without_other_devices
from testbed.errors import ApiError, TestbedError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary.cluster.cdi_files import reachable_nodes, read_cdi_files
from testbed.vocabulary.cluster.cdi_specs import explain_unresolvable
from testbed.vocabulary.observing.causes import CDI_UNRESOLVABLE, DRIVER_UNREACHABLE, NO_DEVICE_FITS
from testbed.vocabulary.observing.diagnosis import (
    describe_unready,
    diagnose,
    lacks_devices,
    oldest_first,
    unresolvable_cdi_ids,
    unschedulable_conditions,
)
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.pods.probe_command import NOT_STARTED, as_container
from testbed.vocabulary.world import World
from testbed.waiting import Budget, eventually

_FORBIDDEN = 403
_SHOWN = 3
_NOT_STARTED = "the container cannot start the program of spec.probe: its image lacks it (if the driver adds it: probe.programFromDriver)"
_NOT_ADDED = "the driver did not add the program of spec.probe to the container (probe.programFromDriver)"


def diagnose_pod(world: World, namespace: str, name: str, pod: Object | None) -> Diagnosis:
    """Return the likely cause that a pod does not run; `pod` is the last state that was seen."""
    node = node_of(world, pod)
    nodes = [] if node or pod is None else _possible_nodes(world)
    file, events = world.driver_file, events_of(world, namespace, name)
    found = diagnose(pod, events, node, nodes, driver=file.driver, in_sandbox=file.acts_on_sandboxes)
    if pod and not found.by_environment and _has_unstartable_probe(pod, as_container(file.probe.argv)):
        if file.probe.program_from_driver:
            return replace(found, cause=_NOT_ADDED, by_driver=True)
        return replace(found, cause=_NOT_STARTED, by_environment=True)
    holders = held_by_others(world) if pod and not found.by_environment and lacks_devices(pod) else ""
    if holders:
        return replace(found, cause=f"it may wait for devices that others use: {holders}", by_environment=True)
    try:
        if found.by_environment or not pod:
            return found
        if found.cause == CDI_UNRESOLVABLE:
            found = replace(found, cause=_explain_unresolvable(world, pod, events) or found.cause)
        return _detailed(world, pod, found)
    except ApiError as refused:
        if refused.status != _FORBIDDEN:
            raise
        return found


def _has_unstartable_probe(pod: Object, command: list[str]) -> bool:
    """Return True if a container whose command is the probe ended because the program could not be started."""
    spec, status = pod["spec"], pod.get("status", {})
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    probes = {each["name"] for each in containers if each.get("command") == command}
    return any(
        state.get("terminated", {}).get("exitCode") in NOT_STARTED
        for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        if each["name"] in probes
        for state in (each.get("state", {}), each.get("lastState", {}))
    )


def _explain_unresolvable(world: World, pod: Object, events: list[Object]) -> str:
    """Explain with the CDI files of the pod's node why CDI IDs could not be resolved; '' if the files cannot be read."""
    ids, name = unresolvable_cdi_ids(pod, events), pod["spec"].get("nodeName", "")
    try:
        node = reachable_nodes(world.cluster).get(name)
        return explain_unresolvable(ids, read_cdi_files(node), name) if node and ids else ""
    except TestbedError:  # the general cause is still true
        return ""


def _detailed(world: World, pod: Object, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis with what the driver lacks, if that explains it. Slices that are missing on the pod's node come first."""
    if lacks_devices(pod):
        missing = [*missing_devices(world.kube, world.driver_file, world.nodes)]
        return replace(found, cause=_why_no_device_fits(world, missing), by_driver=bool(missing))
    node = pod["spec"].get("nodeName", "")
    unpublished = missing_devices(world.kube, world.driver_file, [node]) if node and found.by_driver else ()
    pods = _missing_pod(world, pod) if found.cause in DRIVER_UNREACHABLE else ()
    return replace(found, cause="; ".join([*unpublished, found.cause, *pods]))


def _why_no_device_fits(world: World, missing: list[str]) -> str:
    """Describe what the driver publishes on its nodes, and which claims have its devices."""
    driver_file, driver = world.driver_file, world.driver_file.driver
    nodes = world.nodes
    slices = [each for each in world.slices() if each["spec"].get("nodeName", "") in {*nodes, ""}]
    of_class = without_other_devices(slices, driver_file.other_devices, driver)
    allocated = held_devices(world.kube, driver, of_class)
    claims = list(dict.fromkeys(each.claim for each in allocated))
    to = f", to claims {', '.join(claims[:_SHOWN])}{' and others' if claims[_SHOWN:] else ''}" if claims else ""
    held = len({(each.pool, each.device) for each in allocated})
    published, every = (sum(pool.devices for pool in pools(each, driver)) for each in (of_class, slices))
    beside = f", and there are {every - published} of other classes" if every > published else ""
    has = (
        f"{published} devices on these nodes, {held} of them allocated{to}" if published else "no device on these nodes"
    )
    summary = f"class {driver_file.device_class} has {has}{beside}"
    pods = missing_pods(world.kube, driver_file, nodes) if missing else ()
    return "; ".join([*(missing or [NO_DEVICE_FITS]), *pods, *([summary] if every else [])])


def _missing_pod(world: World, pod: Object) -> list[str]:
    """Return a line if the node of a pod has no ready pod of the driver."""
    node = pod["spec"].get("nodeName")
    return [*missing_pods(world.kube, world.driver_file, [node])] if node else []


def held_by_others(world: World) -> str:
    """Describe the devices of the driver that claims outside this testbed hold, perhaps only since the run began."""
    driver = world.driver_file.driver
    return summarize(devices_held_by_others(world.kube, world.owner, driver, world.slices()))


def diagnose_claim(world: World, namespace: str, claim: str, otherwise: Diagnosis) -> Diagnosis:
    """Return the likely cause that a claim is not allocated, from its unschedulable pods. Causes in the environment take precedence."""
    pods = [
        pod
        for pod in world.kube.list("v1", "Pod", namespace)
        if unschedulable_conditions(pod) and claim in _claims(pod)
    ]
    found = [diagnose_pod(world, namespace, pod["metadata"]["name"], pod) for pod in pods]
    known = sorted((each for each in found if each.cause), key=lambda each: not each.by_environment)
    return known[0] if known else otherwise


def eventually_or_explain(
    world: World,
    check: Callable[[], None],
    expected: str,
    budget: Budget,
    otherwise: Diagnosis,
    *,
    longest_pause: float = 0.1,
) -> None:
    """Call `check` until it does not raise NotYet. If the wait fails, name as the cause a node that is not Ready, or `otherwise`."""
    try:
        eventually(check, expected, budget, longest_pause=longest_pause)
    except WaitTimeout as late:
        raise failure(expected, late.last_seen, late.budget, unless_node_is_unready(world, otherwise)) from late


def unless_node_is_unready(world: World, otherwise: Diagnosis) -> Diagnosis:
    """Return `otherwise`, unless a node of the driver is not Ready: then that explains what a kubelet or driver did not do."""
    unready = describe_unready(_possible_nodes(world))
    return Diagnosis(unready, by_environment=True) if unready else otherwise


def events_of(world: World, namespace: str, name: str) -> list[Object]:
    """Return the events of a pod, oldest first."""
    selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
    return oldest_first(world.kube.list("v1", "Event", namespace, fieldSelector=selector))


def node_of(world: World, pod: Object | None) -> Object | None:
    """Return the node that a pod is bound to, or None if it has none or the node does not exist."""
    name = pod["spec"].get("nodeName") if pod else None
    return world.kube.find("v1", "Node", name) if name else None


def _possible_nodes(world: World) -> list[Object]:
    """Return the nodes where the driver is expected, which are the only ones that count."""
    wanted = world.nodes
    return [node for node in world.kube.list("v1", "Node") if node["metadata"]["name"] in wanted]


def _claims(pod: Object) -> set[str]:
    """Return the names of a pod's claims, also of those that were generated for it."""
    entries = (*pod["spec"].get("resourceClaims", ()), *pod.get("status", {}).get("resourceClaimStatuses", ()))
    extended = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    return {each["resourceClaimName"] for each in (*entries, extended) if each.get("resourceClaimName")}
