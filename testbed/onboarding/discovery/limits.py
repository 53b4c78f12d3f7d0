"""Finds out which uses of a claim a driver refuses, and whether a container has devices that it does not refer to.

A refusal may be a limit that the driver documents, or a fault. Only its vendor knows, so each becomes a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.onboarding.checks import contents
from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.checks.trials import wait_for_pods
from testbed.onboarding.discovery.samples import why_not_running
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World

_NAME = "init"
_ADMIN_ACCESS = "resource.kubernetes.io/admin-access"


@dataclass(frozen=True)
class Limits:
    """Why uses of a claim were refused, by their exemptions in driver files. `beside` is what a container without the claim has."""

    refusals: Mapping[str, str] = field(default_factory=dict)
    beside: Contents = Contents()  # noqa: RUF009 - immutable


def observe_limits(world: World, node: str) -> Limits:
    """Use one device on a node in several ways."""
    own = replace(world, manifests=Path(__file__).parent)
    with new_scenario(own, _NAME) as scenario:
        if _refusal(scenario, node, "first"):
            return Limits()  # nothing to compare with
        beside = scenario.world.kube.exec_unchecked(
            scenario.namespace, "first", contents.COMMAND, container="other"
        ).stdout
        scenario.label_namespace(_ADMIN_ACCESS, "true")
        refusals = {
            "shared-claims": _refusal(scenario, node, "second"),
            "admin-access": _refusal(scenario, node, "admin"),
        }
        return Limits({name: why for name, why in refusals.items() if why}, contents.read(beside))


def _refusal(scenario: Scenario, node: str, part: str) -> str:
    """Start a pod, and return why it does not run, or ''."""
    scenario.apply("limits.yaml", node=node, part=part)
    wait_for_pods(scenario)
    refusal = why_not_running(scenario, part)
    if refusal:
        scenario.delete("pod", part)  # the next pod is waited for alone
    return refusal
