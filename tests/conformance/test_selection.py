from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from testbed.conformance import Capability, Requirement
from testbed.conformance.requirement import GIVEN
from testbed.conformance.selection import Facts, choose, plan, runs_alone
from testbed.models.driver.devices import ClaimShape
from testbed.models.features import EXEMPTIBLE
from testbed.models.requirement_enums import Level, Tier, Verdict

FACTS = Facts(
    "v1.36.2",
    nodes=2,
    devices=4,
    min_node_devices=2,
    capabilities=frozenset({"load-image", "make-objects"}),
    features=frozenset({"taints"}),
    gates=frozenset({"DRADeviceTaints"}),
)


def _requirement(**facts: Any) -> Requirement:
    return Requirement(
        **{"id": "T-001", "sentence": "It works.", "level": Level.MUST, "tier": Tier.E2E, "source": "here", **facts}
    )


@pytest.mark.parametrize(
    ("facts", "verdict", "reason"),
    [
        ({}, None, ""),
        ({"devices": 2, "nodes": 2, "kubernetes": "1.36", "needs": (Capability.LOAD_IMAGE,)}, None, ""),
        ({"features": ("taints",)}, None, ""),
        (
            {"features": ("taints", "health", "identity")},
            Verdict.NOT_APPLICABLE,
            "the driver file does not declare health (spec.features), identity (spec.devices.identity)",
        ),
        ({"kubernetes": "1.37"}, Verdict.NOT_APPLICABLE, "needs Kubernetes 1.37, this cluster has v1.36.2"),
        ({"kubernetes": "1.4"}, None, ""),
        ({"nodes": 3}, Verdict.CLUSTER_UNSUPPORTED, "needs 3 nodes with the driver, there are 2"),
        ({"devices": 3}, Verdict.CLUSTER_UNSUPPORTED, "needs 3 devices on one node, there is a node with 2"),
        ({"devices": 4, "spread": True}, None, ""),
        ({"devices": 5, "spread": True}, Verdict.CLUSTER_UNSUPPORTED, "needs 5 devices, there are 4"),
        ({"gates": ("DRADeviceTaints",)}, None, ""),
        (
            {"gates": ("DRADeviceTaints", "DRAExtendedResource")},
            Verdict.NOT_APPLICABLE,
            "needs DRAExtendedResource, which is off: --feature-gate DRAExtendedResource=true",
        ),
        (
            {"needs": (Capability.REBOOT_NODE,)},
            Verdict.CLUSTER_UNSUPPORTED,
            "the cluster, or --allow, does not support reboot-node",
        ),
    ],
)
def test_a_requirement_is_judged_if_everything_it_needs_is_there(
    facts: dict[str, Any], verdict: Verdict | None, reason: str
) -> None:
    choice = choose(_requirement(**facts), FACTS)
    assert (choice.verdict, choice.reason) == (verdict, reason)


HELD = "claim team-a/training holds gpu-0 of node-1"


@pytest.mark.parametrize(
    ("facts", "left", "reason"),
    [
        ({}, 1, ""),
        ({}, 0, f"needs 1 devices on one node, there is a node with 0: {HELD}"),
        ({"devices": 2}, 1, f"needs 2 devices on one node, there is a node with 1: {HELD}"),
        ({"exclusive": True}, 1, f"needs all devices, but others hold some: {HELD}"),
        ({"exclusive": True, "tier": Tier.DISRUPTIVE}, 1, f"needs all devices, but others hold some: {HELD}"),
        ({"exclusive": True, "tier": Tier.STATIC}, 0, ""),
    ],
)
def test_devices_that_others_hold_cannot_be_used(facts: dict[str, Any], left: int, reason: str) -> None:
    choice = choose(_requirement(**facts), replace(FACTS, devices=left, min_node_devices=left, held_by_others=HELD))
    assert choice.reason == reason
    assert choice.verdict is (Verdict.CLUSTER_UNSUPPORTED if reason else None)


def test_requirements_newer_than_the_oldest_kubelet_are_not_judged() -> None:
    upgrading = replace(FACTS, kubernetes="v1.37.1", kubelet="v1.36.4")
    choice = choose(_requirement(kubernetes="1.37"), upgrading)
    assert (choice.verdict, choice.reason) == (
        Verdict.NOT_APPLICABLE,
        "needs Kubernetes 1.37, a kubelet has v1.36.4",
    )
    assert choose(_requirement(kubernetes="1.37"), replace(upgrading, kubelet="v1.37.0")).verdict is None


@pytest.mark.parametrize(
    ("facts", "is_alone"),
    [
        ({}, False),
        ({"exclusive": True}, True),
        ({"only_user_of": "capacity"}, False),
        ({"only_user_of": "binding"}, True),
    ],
)
def test_a_test_runs_alone_if_others_can_get_its_devices(facts: dict[str, Any], is_alone: bool) -> None:
    assert runs_alone(_requirement(**facts), replace(FACTS, reserved_classes=frozenset({"capacity"}))) is is_alone


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("local", "the driver file declares network-attached devices (spec.devices.belongTo)"),
        ("few", "the driver file declares more than 32 devices for each node (spec.devices.perNode)"),
        (
            "unshared",
            "the driver file declares ordinary devices that several claims can share (spec.optional.capacity.class)",
        ),
    ],
)
def test_a_declaration_that_contradicts_an_assumption_makes_a_requirement_not_applicable(
    word: str, reason: str
) -> None:
    declared = replace(FACTS, given=frozenset({*GIVEN} - {word}))
    spared = choose(_requirement(given=(word,)), declared)
    assert (spared.verdict, spared.reason) == (Verdict.NOT_APPLICABLE, reason)
    assert choose(_requirement(given=tuple({*GIVEN} - {word})), declared).verdict is None


def test_more_devices_than_an_allocation_can_contain_are_not_requested_at_once() -> None:
    spared = choose(_requirement(given=("few",)), replace(FACTS, max_node_devices=33))
    reason = (
        "needs all devices of a node in one allocation of at most 32, there is a node with 33 "
        "(spec.devices.others of the driver file excludes devices)"
    )
    assert (spared.verdict, spared.reason) == (Verdict.CLUSTER_UNSUPPORTED, reason)
    assert choose(_requirement(given=("few",)), replace(FACTS, max_node_devices=32)).verdict is None
    assert choose(_requirement(given=("local",)), replace(FACTS, max_node_devices=33)).verdict is None


def test_an_exemption_is_named_as_one() -> None:
    facts = replace(FACTS, features=frozenset(EXEMPTIBLE).difference({"cdi", "per-container"}))
    choice = choose(_requirement(features=("per-container", "cdi", "taints", "shared-claims")), facts)
    undeclared = "the driver file does not declare taints (spec.optional.taints)"
    exempt = "the driver file exempts the driver from cdi, per-container (spec.exempt)"
    assert (choice.verdict, choice.reason) == (Verdict.NOT_APPLICABLE, f"{undeclared}; {exempt}")
    assert choose(_requirement(features=("shared-claims",)), facts).verdict is None


def test_a_gate_that_was_turned_off_is_what_the_cluster_lacks() -> None:
    off = replace(FACTS, default_gates=frozenset({"DRADeviceTaints", "DRAPartitionableDevices"}))
    assert choose(_requirement(gates=("DRADeviceTaints",)), off).verdict is None
    turned_off = choose(_requirement(gates=("DRAPartitionableDevices",)), off)
    assert (turned_off.verdict, turned_off.reason) == (
        Verdict.CLUSTER_UNSUPPORTED,
        "needs DRAPartitionableDevices, which is off: --feature-gate DRAPartitionableDevices=true",
    )
    assert choose(_requirement(gates=("DRAExtendedResource",)), off).verdict is Verdict.NOT_APPLICABLE


def test_only_an_exemption_that_is_the_whole_reason_counts_as_one() -> None:
    facts = replace(FACTS, features=frozenset({"per-container"}))
    assert choose(_requirement(features=("cdi",)), facts).exempt
    assert not choose(_requirement(features=("cdi", "health")), facts).exempt
    assert not choose(_requirement(features=("health",)), facts).exempt
    assert not choose(_requirement(features=("per-container",)), facts).exempt


def test_a_requirement_of_another_tier_is_excluded_only_if_it_applies() -> None:
    wire, free = _requirement(tier=Tier.WIRE), _requirement(id="T-002", tier=Tier.WIRE, features=("health",))
    choices = plan([wire, free], FACTS, frozenset({"e2e"}))
    assert [each.verdict for each in choices] == [Verdict.EXCLUDED, Verdict.NOT_APPLICABLE]


def test_a_driver_that_publishes_nothing_is_judged() -> None:
    assert choose(_requirement(devices=2), replace(FACTS, devices=0)).verdict is None
    nothing = replace(FACTS, devices=0, min_node_devices=0)
    assert choose(_requirement(given=tuple(GIVEN)), nothing).verdict is None


def test_a_node_without_devices_does_not_prevent_judging() -> None:
    assert choose(_requirement(devices=1), replace(FACTS, min_node_devices=0)).verdict is None
    assert choose(_requirement(devices=2), replace(FACTS, min_node_devices=0)).verdict is None


def test_tiers_that_were_not_selected_are_excluded() -> None:
    wire, e2e = _requirement(tier=Tier.WIRE), _requirement(id="T-002")
    assert [each.verdict for each in plan([wire, e2e], FACTS, frozenset({"wire"}))] == [None, Verdict.EXCLUDED]
    assert [each.verdict for each in plan([wire, e2e], FACTS)] == [None, None]


def test_only_the_static_tier_is_judged_with_read_only_access() -> None:
    looked_at = replace(FACTS, capabilities=frozenset())

    assert choose(_requirement(tier=Tier.STATIC), looked_at).verdict is None
    refused = choose(_requirement(), looked_at)
    assert (refused.verdict, refused.reason) == (
        Verdict.CLUSTER_UNSUPPORTED,
        "the cluster, or --allow, does not support make-objects",
    )


@pytest.mark.parametrize(
    ("counts", "facts", "reason"),
    [
        ("any", {"counts": (1, "all")}, ""),
        ("all", {"counts": ("all",)}, ""),
        ("all", {"devices": 2, "spread": True}, ""),
        ([1, 2], {"counts": (1,), "devices": 2}, ""),
        ("all", {"counts": (2,)}, "that a request has all devices (spec.devices.claim.counts), the test requests 2"),
        ([2, 4], {"counts": (1, "all")}, "that a request has 2 or 4 devices (spec.devices.claim.counts), the test requests 1 and all"),
        ("all", {"devices": 2}, "that a request has all devices (spec.devices.claim.counts), the test needs 2 requests on one node"),
    ],
)  # fmt: skip
def test_a_requirement_whose_claims_the_driver_does_not_accept_is_not_applicable(
    counts: Any, facts: dict[str, Any], reason: str
) -> None:
    claim = ClaimShape.model_validate_json(json.dumps({"counts": counts}))
    choice = choose(_requirement(**facts), replace(FACTS, claim=claim))
    assert choice.reason.endswith(reason)
    assert choice.verdict is (Verdict.NOT_APPLICABLE if reason else None)


def test_the_rights_of_a_process_are_not_judged() -> None:
    process = replace(FACTS, given=frozenset({*GIVEN} - {"rights"}))
    spared = choose(_requirement(needs=(Capability.ACT_AS_DRIVER,)), process)
    assert spared.verdict is Verdict.NOT_APPLICABLE
    assert "which has the rights of an administrator (spec.install.process)" in spared.reason
