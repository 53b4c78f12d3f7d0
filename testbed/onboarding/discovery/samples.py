"""Runs pods with and without claims on one node, and returns what their containers have. Used by `initialize`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.kube.client import Object
from testbed.onboarding.checks import contents
from testbed.onboarding.checks.trials import is_running, wait_for_pods
from testbed.onboarding.discovery.facts import PublishedDevice, Sample
from testbed.vocabulary.cluster.cdi_files import reachable_nodes, read_cdi_files
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.diagnosis import describe_pod, lacks_devices
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import RESOURCE, World

_NAME = "init"  # of the namespace
_CONTAINER = "workload"


def take_samples(world: World, node: str, counts: Sequence[int], devices: Collection[PublishedDevice]) -> list[Sample]:
    """Run a pod for each count of devices, 0 for a pod without a claim, and return what their containers have."""
    own = replace(world, manifests=Path(__file__).parent)
    with new_scenario(own, _NAME) as scenario:
        scenario.apply("samples.yaml", node=node, counts=list(counts))
        wait_for_pods(scenario)
        return [_sample(scenario, node, count, devices) for count in counts]


def why_not_running(scenario: Scenario, name: str) -> str:
    """Return why a pod does not run; '' if it runs, or if only no device is free."""
    pod = scenario.pod(name).object
    if is_running(pod) or lacks_devices(pod):
        return ""
    found = queries.diagnose_pod(scenario.world, scenario.namespace, name, pod)
    return "; ".join(filter(None, [found.cause, *found.warnings[-1:]])) or describe_pod(pod)


def _sample(scenario: Scenario, node: str, count: int, devices: Collection[PublishedDevice]) -> Sample:
    kube, name = scenario.world.kube, f"sample-{count}"
    pod = scenario.pod(name).object
    refusal = why_not_running(scenario, name)
    if refusal:
        return Sample(node, count, refusal=refusal)
    if not is_running(pod):
        return Sample(node, count)
    output = kube.exec_unchecked(scenario.namespace, name, contents.COMMAND, container=_CONTAINER).stdout
    claim = kube.get(RESOURCE, "ResourceClaim", f"devices-{count}", scenario.namespace) if count else {}
    return Sample(
        node,
        count,
        contents.read(output),
        _allocated(claim, devices),
        claim.get("metadata", {}).get("uid", ""),
        has_status=bool(claim.get("status", {}).get("devices")),
        cdi=_cdi(scenario.world, node),
        has_health=_has_health(pod),
    )


def _allocated(claim: Object, devices: Collection[PublishedDevice]) -> tuple[PublishedDevice, ...]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results") or ()
    wanted = [(each["driver"], each["pool"], each["device"]) for each in results]
    return tuple(each for each in devices if (each.driver, each.pool, each.name) in wanted)


def _has_health(pod: Object) -> bool:
    """Return True if the pod's status has the health of a device. Without a report of the driver, it is Unknown."""
    statuses = [
        entry for each in pod["status"]["containerStatuses"] for entry in each.get("allocatedResourcesStatus") or ()
    ]
    return any(
        resource.get("health", "Unknown") != "Unknown" for each in statuses for resource in each.get("resources") or ()
    )


def _cdi(world: World, node: str) -> str | None:
    found = reachable_nodes(world.cluster).get(node)
    return "\n".join(read_cdi_files(found).values()) if found else None
