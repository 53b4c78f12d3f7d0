"""Finds out which uses of claims a driver refuses, and whether a container has devices that it does not refer to.

A refusal may be a limit that the driver documents, or a fault. Only its vendor knows, so each becomes a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_FIRST, _OTHER = "first", "other"  # a pod, and its container that does not refer to the claim
# Exemptions of driver files by the pods of limits.yaml: those beside the first pod, and those with claims of their own.
_BESIDE = {"second": "shared-claims", "admin": "admin-access"}
_ALONE = {"both": "shared-by-containers", "one": "one-request", "several": "several-claims"}


@dataclass(frozen=True)
class Limits:
    """Why uses of claims were refused, by their exemptions in driver files. `beside` is what a container without the claim has."""

    refusals: Mapping[str, str] = field(default_factory=dict)
    beside: Contents = Contents()  # noqa: RUF009 - immutable


def observe_limits(world: World, node: str) -> Limits:
    """Use devices of a node in several ways. Without free devices, a use is not observed."""
    own = replace(world, manifests=Path(__file__).parent)
    with new_scenario(own, _NAME) as scenario:
        if _refusals(scenario, node, [_FIRST]):
            return Limits()  # nothing to compare with
        beside = scenario.world.kube.exec_unchecked(
            scenario.namespace, _FIRST, contents.COMMAND, container=_OTHER
        ).stdout
        scenario.label_namespace(_ADMIN_ACCESS, "true")
        refused = _refusals(scenario, node, [*_BESIDE])
    with new_scenario(own, _NAME) as scenario:
        refused |= _refusals(scenario, node, [*_ALONE])
    return Limits({(_BESIDE | _ALONE)[part]: why for part, why in refused.items()}, contents.read(beside))


def _refusals(scenario: Scenario, node: str, parts: Sequence[str]) -> dict[str, str]:
    """Start pods, and return why they do not run, without those that do."""
    scenario.apply("limits.yaml", node=node, parts=list(parts))
    wait_for_pods(scenario)
    return {part: why for part in parts if (why := why_not_running(scenario, part))}
