from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_driver.devices.health import HEALTHY, UNHEALTHY, UNKNOWN, Health
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import devices
from fake_driver.mutants import selection
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.preparing.checkpoint import Checkpoint
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.device_metadata import MetadataFolder
from fake_driver.preparing.driver import Collaborators, NodeFiles, NoStatusUpdates
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.opaque_configuration import OpaqueConfig
from fake_driver.publishing import slices
from fake_driver.roles.node_driver import Parts

FILE = Path(__file__).parents[3] / "manifests/hardware/server.yaml"
DRIVER = "gpu.dra-testbed.example"


def wrong(fault: str = "") -> Parts:
    right = Parts(Inventory("n", devices(hardware_file.read(FILE), "n")), data=Path("unused"))
    return selection.apply([fault] if fault else [], right)


def published(fault: str = "") -> list[Any]:
    use = wrong(fault)
    return use.alter_slices(slices.for_node(DRIVER, slices.Owner("n", "uid"), use.inventory.devices))


def texts(fault: str = "") -> str:
    return str(published(fault))


@pytest.mark.parametrize(
    ("fault", "word"),
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
def test_fields_missing_from_slices(fault: str, word: str) -> None:
    assert word in texts()
    assert word not in texts(fault)


@pytest.mark.parametrize("fault", ["taints-missing", "counters-missing", "policies-missing", "counters-of-nobody"])
def test_all_devices_are_published(fault: str) -> None:
    names = [
        [device["name"] for each in some for device in each["spec"].get("devices", ())]
        for some in (published(), published(fault))
    ]
    assert names[0] == names[1]


def test_policies_missing_keeps_the_capacity() -> None:
    assert "'allowMultipleAllocations'" in texts("policies-missing")
    assert "{'memory': {'value': '16Gi'}}" in texts("policies-missing")


def test_counters_of_nobody() -> None:
    assert "'counterSet': 'nobodys'" in texts("counters-of-nobody")
    assert "'name': 'nobodys'" not in texts("counters-of-nobody")


def test_parts_offered_twice() -> None:
    pools: dict[str, list[Any]] = {}
    for each in published("parts-offered-twice"):
        pools.setdefault(each["spec"]["pool"]["name"], []).append(each["spec"])
    once, again = pools["n"], pools["n-again"]

    assert len({each["metadata"]["name"] for each in published("parts-offered-twice")}) == len(once) + len(again)
    for specs in (once, again):
        assert {spec["pool"]["resourceSliceCount"] for spec in specs} == {len(specs)}
    drawing = [
        [device for spec in specs for device in spec.get("devices", ()) if device.get("consumesCounters")]
        for specs in (once, again)
    ]
    assert drawing[0] == drawing[1] != []
    assert [spec.get("sharedCounters") for spec in once if "sharedCounters" in spec] == [
        spec["sharedCounters"] for spec in again if "sharedCounters" in spec
    ]


@pytest.mark.parametrize(("fault", "is_refused"), [("", False), ("shares-exclude-each-other", True)])
def test_shares_exclude_each_other(fault: str, is_refused: bool) -> None:
    one, other = (
        PreparedClaim(ClaimRef(uid), (AllocatedDevice("r", "n", "gpu-11", share_id=f"share-{uid}"),)) for uid in "ab"
    )
    assert bool(wrong(fault).conflict(one, {"b": other})) is is_refused


@pytest.mark.parametrize(("fault", "has_mount"), [("", True), ("mounts-missing", False)])
def test_mounts_missing(fault: str, has_mount: bool, tmp_path: Path) -> None:
    mount = {"hostPath": "/a", "containerPath": "/b"}
    device = replace(wrong().inventory.devices[0], container_edits={"mounts": [mount]})
    use = wrong(fault)
    claim = {"uid": "uid-1"}, {"request": "r", "driver": DRIVER, "pool": "n", "device": device.name}
    served = {"metadata": claim[0], "status": {"allocation": {"devices": {"results": [claim[1]]}}}}
    made = use.driver(
        DRIVER,
        Collaborators(Inventory("n", (device,))),
        NodeFiles(
            Checkpoint(tmp_path / "claims"),
            CdiFolder(tmp_path / "cdi", DRIVER),
            MetadataFolder(tmp_path / "metadata", DRIVER, (), lambda _device, _allocated: {}),
        ),
        lambda _ref, _timeout: served,
        NoStatusUpdates(),
    )
    made.prepare(ClaimRef("uid-1", "default", "c"))
    (file,) = (tmp_path / "cdi").glob("*.json")
    assert ("containerPath" in file.read_text()) is has_mount


def test_ignores_config_of_subrequests() -> None:
    found = [
        OpaqueConfig("GpuConfig", requests=("r/sub",)),
        OpaqueConfig("GpuConfig", requests=("r",)),
        OpaqueConfig("GpuConfig"),
    ]
    assert list(wrong("ignores-config-of-subrequests").config_order(found)) == found[1:]


@pytest.mark.parametrize(
    ("fault", "statuses", "has_message"),
    [
        ("", {HEALTHY, UNHEALTHY}, True),
        ("health-unknown", {UNKNOWN}, False),
        ("health-always-well", {HEALTHY}, False),
        ("health-without-words", {HEALTHY, UNHEALTHY}, False),
    ],
)
def test_wrong_health(fault: str, statuses: set[str], has_message: bool) -> None:
    use = wrong(fault)
    found = [use.initial_health(device) for device in use.inventory.devices]
    assert {each.status for each in found} == statuses
    assert any(each.message for each in found) is has_message


@pytest.mark.parametrize(("fault", "status"), [("", UNHEALTHY), ("health-told-once", HEALTHY)])
def test_health_told_once(fault: str, status: str) -> None:
    health_store = wrong(fault).health_store({("n", "gpu-0"): Health()})
    health_store.set(("n", "gpu-0"), Health(UNHEALTHY))
    health_store.set(("n", "gpu-1"), Health(UNKNOWN))
    assert health_store.count_by_status() == {status: 1, UNKNOWN: 1}
