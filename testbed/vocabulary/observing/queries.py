"""Ask the cluster what keeps a pod: its events, its node, or the nodes that it could be on. Words call it when they give up."""

from __future__ import annotations

from dataclasses import replace

from testbed.drivers.published.holders import devices_held_by_others, held_devices, summarize
from testbed.drivers.published.missing import missing_devices, missing_pods
from testbed.drivers.published.slices import pools, without_other_devices
from testbed.drivers.ready import expected_nodes
from testbed.errors import ApiError
from testbed.kube.client import Object
from testbed.vocabulary.observing.diagnosis import (
    ABSENT,
    NO_DEVICE_FITS,
    describe_unready,
    diagnose,
    lacks_devices,
    oldest_first,
    refused,
)
from testbed.vocabulary.observing.observation import Diagnosis
from testbed.vocabulary.world import World

_FORBIDDEN = 403
_SHOWN = 3


def why(world: World, namespace: str, name: str, pod: Object | None) -> Diagnosis:
    """What probably keeps the pod of that name; `pod` is how it was seen last."""
    node = node_of(world, pod)
    nodes = [] if node or pod is None else _candidates(world)
    found = diagnose(pod, events_of(world, namespace, name), node, nodes)
    holders = held_by_others(world) if pod and not found.by_environment and lacks_devices(pod) else ""
    if holders:
        return replace(found, cause=f"it may wait for devices of others: {holders}", by_environment=True)
    try:
        return found if found.by_environment or not pod else replace(found, cause=_more_of(world, pod, found.cause))
    except ApiError as refused:
        if refused.status != _FORBIDDEN:
            raise
        return found


def _more_of(world: World, pod: Object, cause: str) -> str:
    """A cause with what is not there of the driver, where that explains it."""
    if lacks_devices(pod):
        return _no_device(world)
    return "; ".join([cause, *(_absent_on(world, pod) if cause in ABSENT else ())])


def _no_device(world: World) -> str:
    """Why no free device fits: the driver publishes none, or claims have them."""
    driver_file, driver = world.driver_file, world.driver_file.driver
    nodes = expected_nodes(world.kube, driver_file)
    absent = [*missing_devices(world.kube, driver_file, nodes)]
    slices = [each for each in world.slices() if each["spec"].get("nodeName", "") in {*nodes, ""}]
    usual = without_other_devices(slices, driver_file.other_devices, driver)
    taken = held_devices(world.kube, driver, usual)
    claims = list(dict.fromkeys(each.claim for each in taken))
    to = f", to claims {', '.join(claims[:_SHOWN])}{' and others' if claims[_SHOWN:] else ''}" if claims else ""
    held = len({(each.pool, each.device) for each in taken})
    published, others = (sum(pool.devices for pool in pools(each, driver)) for each in (usual, slices))
    beside = f", and there are {others - published} of other classes" if others > published else ""
    has = (
        f"{published} devices on these nodes, {held} of them allocated{to}" if published else "no device on these nodes"
    )
    total = f"class {driver_file.device_class} has {has}{beside}"
    pods = missing_pods(world.kube, driver_file, nodes) if absent else ()
    return "; ".join([*(absent or [NO_DEVICE_FITS]), *pods, *([total] if others else [])])


def _absent_on(world: World, pod: Object) -> list[str]:
    """The driver's pod on the node of a pod: it is not there, or not ready."""
    node = pod["spec"].get("nodeName")
    return [*missing_pods(world.kube, world.driver_file, [node])] if node else []


def held_by_others(world: World) -> str:
    """Which devices of the driver claims have that are not of this testbed; they may have come after the run began."""
    driver = world.driver_file.driver
    return summarize(devices_held_by_others(world.kube, world.owner, driver, world.slices()))


def diagnose_claim(world: World, namespace: str, claim: str, otherwise: Diagnosis) -> Diagnosis:
    """What the scheduler says to the pods of a claim: no other says why it got no device. What is not the driver's fault goes first."""
    pods = [pod for pod in world.kube.list("v1", "Pod", namespace) if refused(pod) and claim in _claims(pod)]
    found = [why(world, namespace, pod["metadata"]["name"], pod) for pod in pods]
    explained = sorted((each for each in found if each.cause), key=lambda each: not each.by_environment)
    return explained[0] if explained else otherwise


def unless_node_is_away(world: World, otherwise: Diagnosis) -> Diagnosis:
    """For what only somebody on a node can do: a node of the driver that is away explains it, whatever it would mean otherwise."""
    away = describe_unready(_candidates(world))
    return Diagnosis(away, by_environment=True) if away else otherwise


def events_of(world: World, namespace: str, name: str) -> list[Object]:
    """What Kubernetes says about a pod, the newest last."""
    selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
    return oldest_first(world.kube.list("v1", "Event", namespace, fieldSelector=selector))


def node_of(world: World, pod: Object | None) -> Object | None:
    """The node that a pod is on, if it is on one that is there."""
    name = pod["spec"].get("nodeName") if pod else None
    return world.kube.find("v1", "Node", name) if name else None


def _candidates(world: World) -> list[Object]:
    """The nodes where the driver is expected: what others are short of keeps no pod from its devices."""
    wanted = expected_nodes(world.kube, world.driver_file)
    return [node for node in world.kube.list("v1", "Node") if node["metadata"]["name"] in wanted]


def _claims(pod: Object) -> set[str]:
    """The names of a pod's claims: those that it names itself, and those that were made for it."""
    entries = (*pod["spec"].get("resourceClaims", ()), *pod.get("status", {}).get("resourceClaimStatuses", ()))
    made = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    return {each["resourceClaimName"] for each in (*entries, made) if each.get("resourceClaimName")}
