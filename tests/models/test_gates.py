"""Parsing and checking feature gates and runtime config."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from testbed.binaries import lock_for, minors
from testbed.errors import UsageError
from testbed.models.gates import check_gates, check_runtime_config, check_skew, parse_gate, parse_runtime_config


@dataclass(frozen=True)
class Gate:
    stage: str = "beta"
    default: bool = True
    locked: bool = False
    needs: tuple[str, ...] = ()


KNOWN = {
    "DynamicResourceAllocation": Gate("ga", locked=True),
    "DRAExtendedResource": Gate("beta", default=False),
    "DRAOnTop": Gate("alpha", default=False, needs=("DRAExtendedResource",)),
    "DRAPartitions": Gate("beta", default=True),
    "DRASwitch": Gate("beta", default=True, needs=("DRAPartitions",)),
    "Removed": Gate("ga", default=False, locked=True),
}


@pytest.mark.parametrize(
    ("text", "gate"), [("A=true", ("A", True)), ("A=False", ("A", False)), (" A = true ", ("A", True))]
)
def test_gates_are_parsed(text: str, gate: tuple[str, bool]) -> None:
    assert parse_gate(text) == gate


@pytest.mark.parametrize("text", ["A", "A=", "=true", "A=1", "A=yes", "", "A=true=true"])
def test_an_invalid_gate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Name=true or Name=false"):
        parse_gate(text)


def test_an_api_without_a_value_is_enabled() -> None:
    assert parse_runtime_config("resource.k8s.io/v1beta1") == ("resource.k8s.io/v1beta1", "true")
    assert parse_runtime_config("api/all=false") == ("api/all", "false")


def test_an_api_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="group/version"):
        parse_runtime_config("=true")


def test_settable_gates_are_accepted() -> None:
    check_gates({"DRAExtendedResource": True, "DRAOnTop": True, "DynamicResourceAllocation": True}, KNOWN)


def test_an_unknown_gate_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"no feature gate DRAExtendedResources; did you mean DRAExtendedResource"):
        check_gates({"DRAExtendedResources": True}, KNOWN)


def test_a_locked_gate_cannot_be_changed() -> None:
    with pytest.raises(UsageError, match="DynamicResourceAllocation is locked to true"):
        check_gates({"DynamicResourceAllocation": False}, KNOWN)


def test_a_gate_without_the_gates_that_it_needs_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="DRAOnTop needs DRAExtendedResource, which is off; add --feature-gate DRAExt"):
        check_gates({"DRAOnTop": True}, KNOWN)


def test_a_gate_that_is_on_by_default_needs_its_gates_too() -> None:
    with pytest.raises(UsageError, match="DRASwitch needs DRAPartitions, which is off"):
        check_gates({"DRAPartitions": False}, KNOWN)


def test_a_stage_applies_to_its_gates_unless_they_are_named() -> None:
    with pytest.raises(UsageError, match="DRAOnTop needs"):
        check_gates({"AllAlpha": True}, KNOWN | {"AllAlpha": Gate("alpha", default=False)})

    check_gates({"AllAlpha": True, "DRAOnTop": False}, KNOWN | {"AllAlpha": Gate("alpha", default=False)})


def test_all_problems_are_listed() -> None:
    with pytest.raises(UsageError) as refused:
        check_gates({"Nope": True, "Removed": True, "DRAOnTop": True}, KNOWN)

    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize("minor", minors())
def test_the_defaults_of_every_locked_kubernetes_are_accepted(minor: str) -> None:
    gates = lock_for(minor).gates

    check_gates({}, gates)
    check_gates({name: gate.default for name, gate in gates.items()}, gates)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("resource.k8s.io/v9", "true", r"no resource\.k8s\.io/v9"),
        ("resource.k8s.io/v1beta1", "maybe", "must be true or false"),
        ("foo", "true", "is not an API"),
        ("api/everything", "true", "is not an API"),
    ],
)
def test_an_invalid_runtime_config_is_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_runtime_config({key: value}, {"v1": True, "v1beta1": False})


def test_a_runtime_config_may_name_versions_and_stages() -> None:
    check_runtime_config(
        {"resource.k8s.io/v1beta1": "true", "api/alpha": "true", "scheduling.k8s.io/v1alpha2": "true"},
        {"v1": True, "v1beta1": False},
    )


@pytest.mark.parametrize("kubelet", ["1.37.1", "1.36.4", "1.34.10"])
def test_a_kubelet_may_be_up_to_three_minor_versions_older(kubelet: str) -> None:
    check_skew("1.37.1", kubelet)


@pytest.mark.parametrize("kubelet", ["1.38.0", "1.33.1"])
def test_a_newer_or_too_old_kubelet_is_refused(kubelet: str) -> None:
    with pytest.raises(UsageError, match=f"--kubelet {kubelet} is not supported with Kubernetes 1.37.1"):
        check_skew("1.37.1", kubelet)
