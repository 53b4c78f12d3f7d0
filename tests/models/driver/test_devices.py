"""What a driver file declares about devices, their amounts and identities."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.conformance.requirement import GIVEN
from testbed.errors import UsageError
from testbed.models.driver.devices import ClaimShape
from testbed.models.driver_file import load_driver_file
from tests.fakes import cluster
from tests.fakes.driver_files import with_values
from tests.models.driver.files import FULL, load


@pytest.mark.parametrize(
    ("more", "given"),
    [
        ("", {*GIVEN}),
        ("    belongTo: network\n", {*GIVEN} - {"local"}),
        ("    perNode: 33\n", {*GIVEN} - {"few"}),
        ("    claim: {with: [nic.example.com]}\n", {*GIVEN} - {"alone"}),
        (
            "  optional: {capacity: {class: gpu.dra-testbed.example, name: memory, half: 8Gi}}\n",
            {*GIVEN} - {"unshared"},
        ),
    ],
)
def test_the_file_declares_what_tests_may_assume_about_devices(folder: Path, more: str, given: set[str]) -> None:
    identity = "    identity: {attribute: uuid, scope: cluster}\n"
    assert load(folder, FULL.replace(identity, identity + more)).given == given - {"unforgeable"}


@pytest.mark.parametrize(
    ("probe", "is_unforgeable"),
    [
        ("env: '(?P<set>A)'", False),
        ("command: [smi]", False),
        ("command: [smi], without: {command: [smi]}", True),
        ("env: '(?P<set>A)', without: {env: '(?P<set>B)'}", False),
        ("env: '(?P<set>A)', without: {metadata: true}", True),
        ("deviceNode: '(?P<set>A)'", True),
        ("cpuset: true", True),
    ],
)
def test_a_probe_that_each_pod_can_answer_itself(folder: Path, probe: str, is_unforgeable: bool) -> None:
    found = load(folder, f"{FULL[: FULL.index('  probe:')]}  probe: {{{probe}}}\n")
    assert ("unforgeable" in found.given) is is_unforgeable


def test_a_class_of_shared_devices_needs_amounts(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"spec\.optional\.capacity\.half: is missing"):
        load(folder, FULL + "  optional: {capacity: {class: c.example.com}}\n")


def test_an_amount_that_is_rounded_needs_the_result(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"only one of uneven and rounded, but needs both or neither"):
        load(folder, FULL + "  optional: {capacity: {class: c.example.com, name: memory, half: 8Gi, uneven: 3Gi}}\n")


@pytest.mark.parametrize("key", ["half", "uneven", "rounded", "tooMuch"])
def test_an_invalid_quantity_is_reported_with_its_line(folder: Path, key: str) -> None:
    amounts = {"half": "8Gi", "uneven": "1.5e3", "rounded": ".5", "tooMuch": "100m"}
    section = "  optional:\n    capacity:\n      class: c.example.com\n      name: memory\n"
    lines = [f"      {name}: '{value}'\n" for name, value in amounts.items()]
    assert load(folder, FULL + section + "".join(lines)).sharing
    wrong = [f"      {name}: {'banana' if name == key else repr(value)}\n" for name, value in amounts.items()]
    with pytest.raises(
        UsageError, match=rf"driver.yaml:\d+: spec.optional.capacity.{key}: is 'banana', but must be a quantity"
    ):
        load(folder, FULL + section + "".join(wrong))


@pytest.mark.parametrize(("scope", "is_unique"), [("cluster", True), ("node", False)])
def test_an_identity_declares_the_feature_whatever_its_scope_is(folder: Path, scope: str, is_unique: bool) -> None:
    file = load(folder, FULL.replace("scope: cluster", f"scope: {scope}"))
    assert file.identity_attribute == "uuid"
    assert "identity" in file.features
    assert file.is_identity_unique is is_unique


def test_configuration_that_each_claim_needs_must_be_known(folder: Path) -> None:
    text = FULL.replace("    classes:", "    claim: {configuration: required}\n    classes:")
    with pytest.raises(UsageError, match=r"required, which requires configuration\.one"):
        load(folder, text)


def test_a_file_whose_claims_need_configuration_tells_tests_so() -> None:
    plain = load_driver_file(cluster.driver_path())
    shape = ClaimShape.model_validate_json('{"configuration": "required"}')
    assert with_values(plain, "devices", claim=shape).given == GIVEN.keys() - {"unconfigured"}
