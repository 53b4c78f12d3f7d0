"""Which requirements can be judged here, decided from facts alone. The plugin's controller and workers decide the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from testbed.conformance import profiles
from testbed.conformance.profiles import FULL
from testbed.conformance.requirement import GIVEN, Requirement
from testbed.models import features
from testbed.models.driver.devices import ClaimShape
from testbed.models.driver_file import MAX_ALLOCATION
from testbed.models.requirement_enums import Tier, Verdict
from testbed.providers.base import Capability

_CREATING = (Tier.E2E, Tier.DISRUPTIVE)  # their tests create pods and claims
_DECLARED = {
    "local": "network-attached devices (spec.devices.belongTo)",
    "few": f"more than {MAX_ALLOCATION} devices for each node (spec.devices.perNode)",
    "unshared": "ordinary devices that several claims can share (spec.optional.capacity.class)",
    "unconfigured": "that each claim needs configuration (spec.devices.claim.configuration)",
    "one-class": "several classes, and the test does not know which of them selects a device (spec.devices.classes)",
    "alone": "that each claim needs devices of other classes (spec.devices.claim.with)",
    "rights": "a process, which has the rights of an administrator (spec.install.process)",
    "unforgeable": "that variables, which each pod can set, or a command, which may read them, show devices, and no spec.probe.without",
}


@dataclass(frozen=True)
class Facts:
    """What was found in the cluster and in the driver file before any test ran. `gates` are the feature gates that are on.

    `devices` is how many claims for devices tests can have on all nodes of the driver, `min_node_devices` on the node with the fewest.
    `kubelet` is the oldest version on these nodes, if it is known.
    `held_by_others` describes the devices that claims of others hold; the two numbers do not count them.
    `default_gates` are the gates that are on by default in this version.
    `gates_assumed` are gates whose state could not be observed: they are assumed to have the defaults of this Kubernetes version.
    `reserved_classes` are the classes of the driver file whose devices no request for ordinary devices, or for another class, can get.
    `max_node_devices` is how many ordinary devices the node with the most can use.
    `given` are the assumptions about ordinary devices (keys of GIVEN) that the driver file makes true.
    `claim` is the shape of claims that the driver accepts. `devices` and `min_node_devices` count the smallest claims of this shape.
    """

    kubernetes: str
    nodes: int
    devices: int
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    gates: frozenset[str] = frozenset()
    min_node_devices: int = 0
    reserved_classes: frozenset[str] = frozenset()
    max_node_devices: int = 0
    kubelet: str = ""
    held_by_others: str = ""
    gates_assumed: frozenset[str] = frozenset()
    default_gates: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset(GIVEN)
    claim: ClaimShape = field(default_factory=ClaimShape)

    @property
    def oldest(self) -> str:
        """Return the oldest version in the cluster: what it lacks may be missing in one of the components."""
        return oldest([self.kubernetes, self.kubelet])


@dataclass(frozen=True)
class Choice:
    """Whether a requirement is judged. If not, `verdict` is the verdict that it has without a test, and `reason` says why.

    `exempt` is True if an exemption in the driver file is the only reason.
    """

    requirement: Requirement
    verdict: Verdict | None = None
    reason: str = ""
    exempt: bool = False


def choose(requirement: Requirement, facts: Facts) -> Choice:
    """Decide whether a requirement can be judged."""
    undeclared = set(requirement.features) - facts.features
    if undeclared:
        reason = features.explain_missing(requirement.features, facts.features)
        return Choice(requirement, Verdict.NOT_APPLICABLE, reason, exempt=undeclared <= features.EXEMPTIBLE.keys())
    absent = (
        _not_given(requirement, facts)
        or _not_in_shape(requirement, facts.claim)
        or _absent_in_kubernetes(requirement, facts)
    )
    if absent:
        return Choice(requirement, Verdict.NOT_APPLICABLE, absent)
    lacking = _lacking(requirement, facts) or _too_many(requirement, facts)
    if lacking:
        return Choice(requirement, Verdict.CLUSTER_UNSUPPORTED, lacking)
    return Choice(requirement)


def runs_alone(requirement: Requirement, facts: Facts) -> bool:
    """Return True if no other test may use devices at the same time: the test uses all, or a class that other tests can get too."""
    return requirement.exclusive or requirement.only_user_of not in {"", *facts.reserved_classes}


def apply_selection(choice: Choice, selected: bool) -> Choice:
    """Return the choice with the tests that pytest selected: a requirement without one is excluded, unless there is another reason."""
    if selected or choice.verdict:
        return choice
    return Choice(choice.requirement, Verdict.EXCLUDED, "not selected on the command line")


def plan(
    requirements: Iterable[Requirement],
    facts: Facts,
    tiers: Collection[str] = (),
    profile: str = FULL,
    failed: Collection[str] = (),
) -> list[Choice]:
    """Decide on all requirements of the profile. With `tiers` or IDs in `failed`, all others are excluded."""
    wanted = profiles.profile(profile)
    return [_choose_among(each, facts, tiers, failed) for each in requirements if wanted.has(each.id)]


def is_selected(requirement: Requirement, tiers: Collection[str], failed: Collection[str]) -> bool:
    """Return True if the options --tier and --failed leave a requirement in."""
    return (not tiers or requirement.tier in tiers) and (not failed or requirement.id in failed)


def _choose_among(requirement: Requirement, facts: Facts, tiers: Collection[str], failed: Collection[str]) -> Choice:
    choice = choose(requirement, facts)
    if choice.verdict or is_selected(requirement, tiers, failed):
        return choice
    by_tier = tiers and requirement.tier not in tiers
    reason = f"tier {requirement.tier} was not selected" if by_tier else "did not fail in the earlier report"
    return Choice(requirement, Verdict.EXCLUDED, reason)


def _absent_in_kubernetes(requirement: Requirement, facts: Facts) -> str:
    """Return why this Kubernetes does not have the feature: it is too old, or gates are off that it does not turn on by default."""
    if _minor(facts.oldest) < _minor(requirement.kubernetes):
        part = "this cluster has" if facts.oldest == facts.kubernetes else "a kubelet has"
        return f"needs Kubernetes {requirement.kubernetes}, {part} {facts.oldest}"
    return _describe_off(sorted(set(requirement.gates) - facts.gates - facts.default_gates), facts)


def _describe_off(gates: list[str], facts: Facts) -> str:
    if not gates:
        return ""
    how = "assumed to be off" if facts.gates_assumed.issuperset(gates) else "off"
    return f"needs {', '.join(gates)}, which is {how}: {' '.join(f'--feature-gate {gate}=true' for gate in gates)}"


def _lacking(requirement: Requirement, facts: Facts) -> str:
    """Return what the cluster, or --allow, lacks: '' if nothing."""
    if facts.nodes < requirement.nodes:
        return f"needs {requirement.nodes} nodes with the driver, there are {facts.nodes}"
    short = _short(requirement, facts)
    if short:
        return f"{short}: {facts.held_by_others}" if facts.held_by_others else short
    turned_off = _describe_off(sorted(set(requirement.gates) - facts.gates), facts)
    if turned_off:
        return turned_off
    absent = sorted(_needed(requirement) - facts.capabilities)
    return f"the cluster, or --allow, does not support {', '.join(absent)}" if absent else ""


def _short(requirement: Requirement, facts: Facts) -> str:
    """Return how many devices are missing; '' if there are enough."""
    others = bool(facts.held_by_others) and requirement.tier in _CREATING
    if requirement.exclusive and others:
        return "needs all devices, but others hold some"
    # If a driver publishes nothing at all, or nothing on a node, its tests run and fail.
    least = 0 if others else 1
    if requirement.spread and least <= facts.devices < requirement.devices:
        return f"needs {requirement.devices} devices, there are {facts.devices}"
    if not requirement.spread and least <= facts.min_node_devices < requirement.devices:
        return f"needs {requirement.devices} devices on one node, there is a node with {facts.min_node_devices}"
    return ""


def _not_given(requirement: Requirement, facts: Facts) -> str:
    """Return which declaration of the driver file contradicts an assumption of the requirement about devices; '' if none does."""
    return "; ".join(
        f"the driver file declares {_DECLARED[word]}"
        for word in (*requirement.given, *_implied(requirement))
        if word not in facts.given
    )


def _implied(requirement: Requirement) -> tuple[str, ...]:
    return ("rights",) if Capability.ACT_AS_DRIVER in requirement.needs else ()


def _not_in_shape(requirement: Requirement, claim: ClaimShape) -> str:
    """Return why the driver does not accept the claims that the test needs; '' if it accepts them."""
    refused = [str(each) for each in requirement.counts if not claim.accepts(each)]
    if refused:
        return f"{_declares(claim)}, the test requests {' and '.join(refused)}"
    if claim.counts == "all" and requirement.devices > 1 and not requirement.spread:
        return f"{_declares(claim)}, the test needs {requirement.devices} requests on one node"
    return ""


def _declares(claim: ClaimShape) -> str:
    counts = claim.counts if isinstance(claim.counts, str) else " or ".join(map(str, claim.counts))
    return f"the driver file declares that a request has {counts} devices (spec.devices.claim.counts)"


def _too_many(requirement: Requirement, facts: Facts) -> str:
    """Return how many devices a node can use, if an allocation cannot contain all of them; '' if it can, or if it does not have to."""
    if "few" not in requirement.given or facts.max_node_devices <= MAX_ALLOCATION:
        return ""
    return (
        f"needs all devices of a node in one allocation of at most {MAX_ALLOCATION}, "
        f"there is a node with {facts.max_node_devices} (spec.devices.others of the driver file excludes devices)"
    )


def _needed(requirement: Requirement) -> set[str]:
    """Return the capabilities that a requirement needs for itself and for its tier."""
    creates = {Capability.MAKE_OBJECTS} if requirement.tier in _CREATING else set()
    return {*requirement.needs, *creates}


def oldest(versions: Iterable[str]) -> str:
    """Return the oldest of the known versions; '' if none is known."""
    return min(filter(None, versions), key=_minor, default="")


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.removeprefix("v").split(".")[:2]
    return int(major), int(minor)
