"""What of the catalogue can be judged here, decided purely from facts. Called by the plugin, alike in the controller and its workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.conformance import profiles
from testbed.conformance.profiles import FULL
from testbed.conformance.requirement import Requirement
from testbed.models import features
from testbed.models.requirement_enums import Tier, Verdict
from testbed.providers.base import Capability

_MAKING = (Tier.E2E, Tier.DISRUPTIVE)  # their tests make pods and claims
_ROOM = 32  # devices in one allocation: resource.k8s.io/v1, AllocationResultsMaxSize


@dataclass(frozen=True)
class Facts:
    """What was found in the cluster and in the driver file, once, before anything ran. `gates` are the feature gates that are on.

    `devices` are those that pods on the driver's nodes can have together, `node_devices` those that the poorest of these nodes can use.
    `kubelet` is the oldest on the driver's nodes, where it is known.
    `held` says which devices claims of others have; neither number counts them.
    `gates_assumed` are those gates, on or off, at which nobody could look: they are as this Kubernetes has them by itself.
    `apart` are the special classes of the driver file whose devices are no ordinary ones and of no other special class.
    Of the ordinary devices that are published, `network_devices` belong to no node, `shared_devices` can be had by several claims at
    once, and `most_devices` are for the richest node.
    """

    kubernetes: str
    nodes: int
    devices: int
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    gates: frozenset[str] = frozenset()
    node_devices: int = 0
    apart: frozenset[str] = frozenset()
    network_devices: int = 0
    shared_devices: int = 0
    most_devices: int = 0
    kubelet: str = ""
    held: str = ""
    gates_assumed: frozenset[str] = frozenset()

    @property
    def oldest(self) -> str:
        """The version that all parts of the cluster have at least: what it lacks may be missing in one of them."""
        return oldest([self.kubernetes, self.kubelet])


@dataclass(frozen=True)
class Choice:
    """Whether a requirement is judged: no verdict means yes, else the verdict that it has from the start and why."""

    requirement: Requirement
    verdict: Verdict | None = None
    reason: str = ""


def choose(requirement: Requirement, facts: Facts) -> Choice:
    """Decide on one requirement."""
    missing = features.explain_missing(requirement.features, facts.features)
    if missing:
        return Choice(requirement, Verdict.NOT_APPLICABLE, missing)
    lacking = _lacking(requirement, facts) or _not_given(requirement, facts)
    if lacking:
        return Choice(requirement, Verdict.CLUSTER_UNSUPPORTED, lacking)
    return Choice(requirement)


def alone(requirement: Requirement, facts: Facts) -> bool:
    """Whether nobody else may have a device meanwhile: the test takes all of them, or special ones that others get as well."""
    return requirement.exclusive or requirement.only_user_of not in {"", *facts.apart}


def narrowed(choice: Choice, selected: bool) -> Choice:
    """A choice after the command line had its say as well: who is not selected is excluded, unless there is a better reason."""
    if selected or choice.verdict:
        return choice
    return Choice(choice.requirement, Verdict.EXCLUDED, "not selected on the command line")


def plan(
    requirements: Iterable[Requirement], facts: Facts, tiers: frozenset[str] = frozenset(), profile: str = FULL
) -> list[Choice]:
    """Decide on all of the profile; with `tiers`, the others are excluded."""
    wanted = profiles.profile(profile)
    return [
        Choice(each, Verdict.EXCLUDED, f"tier {each.tier} was not asked for")
        if tiers and each.tier not in tiers
        else choose(each, facts)
        for each in requirements
        if wanted.has(each.id)
    ]


def _lacking(requirement: Requirement, facts: Facts) -> str:
    if _minor(facts.oldest) < _minor(requirement.kubernetes):
        part = "this is" if facts.oldest == facts.kubernetes else "a kubelet is"
        return f"needs Kubernetes {requirement.kubernetes}, {part} {facts.oldest}"
    if facts.nodes < requirement.nodes:
        return f"needs {requirement.nodes} nodes with the driver, there are {facts.nodes}"
    short = _short(requirement, facts)
    if short:
        return f"{short}: {facts.held}" if facts.held else short
    off = sorted(set(requirement.gates) - facts.gates)
    if off:
        how = "taken to be off" if facts.gates_assumed.issuperset(off) else "off"
        return f"needs {', '.join(off)}, which is {how}: {' '.join(f'--feature-gate {gate}=true' for gate in off)}"
    absent = sorted(_needed(requirement) - facts.capabilities)
    return f"the cluster cannot {', '.join(absent)}" if absent else ""


def _short(requirement: Requirement, facts: Facts) -> str:
    """What is missing of devices; '' when there are enough."""
    others = bool(facts.held) and requirement.tier in _MAKING
    if requirement.exclusive and others:
        return "wants all devices for itself"
    # A driver that publishes nothing at all, or nothing on a node, is not spared: its tests run, and say so.
    least = 0 if others else 1
    if requirement.spread and least <= facts.devices < requirement.devices:
        return f"needs {requirement.devices} devices, there are {facts.devices}"
    if not requirement.spread and least <= facts.node_devices < requirement.devices:
        return f"needs {requirement.devices} devices on one node, there is a node with {facts.node_devices}"
    return ""


def _not_given(requirement: Requirement, facts: Facts) -> str:
    """What the requirement takes for granted of the driver's devices and is not so; a driver that publishes none is not spared."""
    network, most, shared = facts.network_devices, facts.most_devices, facts.shared_devices
    one_allocation = (
        f"needs all devices of a node in one allocation, which has room for {_ROOM}, there is a node with {most}"
    )
    reasons = {
        "local": f"needs devices that all belong to nodes, there are {network} that do not" if network else "",
        "few": one_allocation if most > _ROOM else "",
        "unshared": f"needs devices for one claim at a time, there are {shared} for several" if shared else "",
    }
    reason = next((reasons[word] for word in requirement.given if reasons[word]), "")
    return f"{reason} (devices that its class does not select stand in spec.otherDevices)" if reason else ""


def _needed(requirement: Requirement) -> set[str]:
    """What it asks for itself, and what every test of its tier does."""
    makes = {Capability.MAKE_OBJECTS} if requirement.tier in _MAKING else set()
    return {*requirement.needs, *makes}


def oldest(versions: Iterable[str]) -> str:
    """The oldest of some versions, some of which may be unknown; '' where all are."""
    return min(filter(None, versions), key=_minor, default="")


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.removeprefix("v").split(".")[:2]
    return int(major), int(minor)
