"""Finds out which uses of claims a driver refuses, and whether a container has devices that it does not refer to.

A refusal may be a limit that the driver documents, or a fault. Only its vendor knows, so each becomes a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.onboarding.checks import contents
from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.checks.trials import is_running, wait_for_pods
from testbed.onboarding.discovery.samples import why_not_running
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World

_NAME = "init"
_ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
_FIRST, _OTHER = "first", "other"  # a pod, and its container that does not refer to the claim
# Exemptions of driver files by the pods of limits.yaml: those beside the first pod, and those with claims of their own.
_BESIDE = {"second": "shared-claims", "admin": "admin-access"}
_ALONE = {"both": "shared-by-containers", "one": "one-request", "several": "several-claims"}


NOTHING = Contents()


@dataclass(frozen=True)
class Limits:
    """What became of uses of claims, by their exemptions in driver files: why they were refused, or what their containers have.

    `beside` is what a container has that does not refer to the claim of its pod.
    """

    refusals: Mapping[str, str] = field(default_factory=dict)
    containers: Mapping[str, Sequence[Contents]] = field(default_factory=dict)
    beside: Contents = NOTHING


def observe_limits(world: World, node: str) -> Limits:
    """Use devices of a node in several ways. Without free devices, a use is not observed."""
    own = replace(world, manifests=Path(__file__).parent)
    with new_scenario(own, _NAME) as scenario:
        _start(scenario, node, [_FIRST])
        if why_not_running(scenario, _FIRST):
            return Limits()  # nothing to compare with
        scenario.label_namespace(_ADMIN_ACCESS, "true")
        _start(scenario, node, [*_BESIDE])
        shared = _observed(scenario, _BESIDE, _contents(scenario, _FIRST, _OTHER))
    with new_scenario(own, _NAME) as scenario:
        _start(scenario, node, [*_ALONE])
        alone = _observed(scenario, _ALONE)
    return Limits({**shared.refusals, **alone.refusals}, {**shared.containers, **alone.containers}, shared.beside)


def _start(scenario: Scenario, node: str, pods: Sequence[str]) -> None:
    scenario.apply("limits.yaml", node=node, parts=list(pods))
    wait_for_pods(scenario)


def _observed(scenario: Scenario, pods: Mapping[str, str], beside: Contents = NOTHING) -> Limits:
    """Return what became of these pods. Those that lack a free device are left out."""
    objects = {pod: scenario.pod(pod).object for pod in pods}
    refusals = {exemption: why for pod, exemption in pods.items() if (why := why_not_running(scenario, pod))}
    containers = {
        pods[pod]: [_contents(scenario, pod, each["name"]) for each in found["spec"]["containers"]]
        for pod, found in objects.items()
        if is_running(found)
    }
    return Limits(refusals, containers, beside)


def _contents(scenario: Scenario, pod: str, container: str) -> Contents:
    output = scenario.world.kube.exec_unchecked(scenario.namespace, pod, contents.COMMAND, container=container).stdout
    return contents.read(output)
