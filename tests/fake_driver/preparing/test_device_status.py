from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fake_driver.devices.model import Attributes, Device, DeviceNetwork, Version
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.device_status import entries, missing, status_data

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ATTRIBUTES: Attributes = {
    "uuid": "u-0",
    "model": "F100",
    "driverVersion": Version("1.2.3"),
    "index": 0,
    "ecc": True,
    "roots": ("a", "b"),
}
GPU = Device("gpu-0", "gpu", ATTRIBUTES, {"memory": "80Gi"})
NIC = Device("nic-0", "nic", {"uuid": "u-1"}, {}, network=DeviceNetwork("eth0", ("192.0.2.1/24",), "02:00:00:00:00:01"))
ALLOCATED = AllocatedDevice("gpu", "worker", "gpu-0")
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Prepared",
    "message": "the device is prepared for containers",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
Object = dict[str, Any]


def status_entries(allocated: AllocatedDevice = ALLOCATED, *present: Object) -> list[Object]:
    claim = PreparedClaim(ClaimRef("uid-1"), (allocated,))
    return entries(
        claim, "gpu.example", {"status": {"devices": list(present)}}, lambda _: {"data": {"uuid": "u-0"}}, NOW
    )


def test_status_data_has_the_attributes() -> None:
    assert status_data(GPU, ALLOCATED) == {
        "data": {"driverVersion": "1.2.3", "ecc": True, "index": 0, "model": "F100", "roots": ["a", "b"], "uuid": "u-0"}
    }


def test_status_data_of_a_network_device_has_its_network() -> None:
    assert status_data(NIC, AllocatedDevice("nic", "worker", "nic-0")) == {
        "data": {"uuid": "u-1"},
        "networkData": {"interfaceName": "eth0", "ips": ["192.0.2.1/24"], "hardwareAddress": "02:00:00:00:00:01"},
    }


def test_configured_network_values_override_the_hardware_file() -> None:
    allocated = AllocatedDevice(
        "nic", "worker", "nic-0", facts={"INTERFACE": "net1", "IPS": "192.0.2.7/24,2001:db8::7/64"}
    )
    network = status_data(NIC, allocated)["networkData"]
    assert (network["interfaceName"], network["ips"]) == ("net1", ["192.0.2.7/24", "2001:db8::7/64"])


def test_an_entry_names_the_device_and_is_ready() -> None:
    key = {"driver": "gpu.example", "pool": "worker", "device": "gpu-0"}
    assert status_entries() == [{**key, "conditions": [READY], "data": {"uuid": "u-0"}}]
    assert status_entries(AllocatedDevice("gpu", "worker", "gpu-0", share_id="s"))[0]["shareID"] == "s"


def test_each_share_of_a_device_has_an_entry() -> None:
    shares = tuple(AllocatedDevice("gpu", "worker", "gpu-0", share_id=share) for share in ("s", "t"))
    found = entries(
        PreparedClaim(ClaimRef("uid-1"), shares),
        "gpu.example",
        {},
        lambda allocated: {"data": {"of": allocated.share_id}},
        NOW,
    )
    assert [(one["shareID"], one["data"]) for one in found] == [("s", {"of": "s"}), ("t", {"of": "t"})]


def test_a_device_that_a_claim_has_twice_has_one_entry() -> None:
    claim = PreparedClaim(ClaimRef("uid-1"), (ALLOCATED, replace(ALLOCATED, request="monitor", admin_access=True)))
    assert entries(claim, "gpu.example", {}, lambda _: {"data": {"uuid": "u-0"}}, NOW) == status_entries()


def test_a_ready_condition_keeps_its_transition_time() -> None:
    before = {**status_entries()[0], "conditions": [{**READY, "lastTransitionTime": "2025-01-01T00:00:00Z"}]}
    assert status_entries(ALLOCATED, before)[0]["conditions"][0]["lastTransitionTime"] == "2025-01-01T00:00:00Z"


@pytest.mark.parametrize("change", [{"status": "False"}, {"type": "Attached"}])
def test_a_changed_condition_gets_a_new_transition_time(change: Object) -> None:
    before = {**status_entries()[0], "conditions": [{**READY, "lastTransitionTime": "2025-01-01T00:00:00Z", **change}]}
    assert status_entries(ALLOCATED, before)[0]["conditions"] == [READY]


def test_entries_of_others_do_not_count_as_missing() -> None:
    (mine,) = status_entries()
    other = {**mine, "driver": "other"}
    both = {**mine, "conditions": [{**READY, "type": "Attached"}, READY], "networkData": {"interfaceName": "x"}}
    assert missing([mine], {"status": {"devices": [other, both]}}) == []


def test_missing_fields_are_named_by_path() -> None:
    (mine,) = status_entries()
    present = {**mine, "data": {"uuid": "u-9"}, "conditions": []}
    paths = ["status.devices[gpu-0].conditions.Ready", "status.devices[gpu-0].data.uuid"]
    assert missing([mine], {"status": {"devices": [present]}}) == paths
    assert missing([mine], {}) == ["status.devices[gpu-0]"]
    assert missing([mine], {"status": {"devices": [{**mine, "shareID": "s"}]}}) == ["status.devices[gpu-0]"]
