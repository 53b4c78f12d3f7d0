from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.publishing import slices

if TYPE_CHECKING:
    from tests.fake_driver.mutants.conftest import PartsWith

SERVER = str(Path(__file__).parents[3] / "manifests/hardware/server.yaml")
DRIVER = "gpu.dra-testbed.example"
Published = Callable[[str], list[Any]]


@pytest.fixture
def published(parts_with: PartsWith) -> Published:
    """Return the slices of a node that a driver with a mutant publishes."""

    def made(name: str) -> list[Any]:
        parts = parts_with(name, hardware=SERVER)
        return parts.alter_slices(slices.for_node(DRIVER, slices.Owner("worker", "uid"), parts.inventory.devices))

    return made


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("taints-missing", "'taints':"),
        ("counters-missing", "'consumesCounters'"),
        ("sharing-missing", "'allowMultipleAllocations'"),
        ("sharing-missing", "'requestPolicy'"),
        ("policies-missing", "'requestPolicy'"),
        ("binding-conditions-missing", "'bindingConditions'"),
        ("binding-conditions-missing", "'bindingFailureConditions'"),
    ],
)
def test_missing_fields(published: Published, name: str, field: str) -> None:
    assert field in str(published(""))
    assert field not in str(published(name))


@pytest.mark.parametrize("name", ["taints-missing", "counters-missing", "policies-missing", "counters-of-nobody"])
def test_all_devices_are_published(published: Published, name: str) -> None:
    correct, wrong = (
        [device["name"] for each in published(which) for device in each["spec"].get("devices", ())]
        for which in ("", name)
    )
    assert correct == wrong


def test_policies_missing_keeps_the_capacity(published: Published) -> None:
    text = str(published("policies-missing"))
    assert "'allowMultipleAllocations'" in text
    assert "{'memory': {'value': '16Gi'}}" in text


def test_counters_of_nobody(published: Published) -> None:  # words: the name of the mutant
    text = str(published("counters-of-nobody"))
    assert "'counterSet': 'nobodys'" in text
    assert "'name': 'nobodys'" not in text


def test_parts_offered_twice(published: Published) -> None:
    found = published("parts-offered-twice")
    pools: dict[str, list[Any]] = {}
    for each in found:
        pools.setdefault(each["spec"]["pool"]["name"], []).append(each["spec"])
    once, again = pools["worker"], pools["worker-again"]

    assert len({each["metadata"]["name"] for each in found}) == len(once) + len(again)
    for specs in (once, again):
        assert {spec["pool"]["resourceSliceCount"] for spec in specs} == {len(specs)}
    consuming = [
        [device for spec in specs for device in spec.get("devices", ()) if device.get("consumesCounters")]
        for specs in (once, again)
    ]
    assert consuming[0] == consuming[1] != []
    assert [spec.get("sharedCounters") for spec in once if "sharedCounters" in spec] == [
        spec["sharedCounters"] for spec in again if "sharedCounters" in spec
    ]


def test_another_devices_attributes_leave_shared_counters_alone(published: Published) -> None:
    found, right = str(published("publish-attributes-of-another-device")), str(published(""))
    assert found.count("'sharedCounters'") == right.count("'sharedCounters'") > 0
    assert found != right
    assert "'devices': []" not in found


def test_counters_doubled_publishes_twice_the_counters(published: Published) -> None:
    correct, wrong = (
        [each["spec"]["sharedCounters"] for each in published(name) if each["spec"].get("sharedCounters")]
        for name in ("", "counters-doubled")
    )
    assert "'memory': {'value': '8'}" in str(correct)
    assert "'memory': {'value': '16'}" in str(wrong)


def test_one_ordinary_device_is_shared(published: Published) -> None:
    devices = [device for each in published("one-ordinary-device-shared") for device in each["spec"].get("devices", ())]
    shared = [
        each["name"] for each in devices if each.get("allowMultipleAllocations") and "purpose" not in each["attributes"]
    ]
    assert shared == ["gpu-0"]


def test_one_ordinary_device_is_tainted(published: Published) -> None:
    devices = [
        device for each in published("one-ordinary-device-tainted") for device in each["spec"].get("devices", ())
    ]
    tainted = [each["name"] for each in devices if each.get("taints") and "purpose" not in each["attributes"]]
    assert tainted == ["gpu-0"]


@pytest.mark.parametrize(("name", "kind"), [("", "version"), ("versions-as-strings", "string")])
def test_versions_as_strings(published: Published, name: str, kind: str) -> None:
    first = published(name)[0]["spec"]["devices"][0]
    assert first["attributes"]["driverVersion"] == {kind: "550.54.15"}
