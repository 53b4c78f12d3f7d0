"""The device status of a ResourceClaim: who may write it, its limits, and what drivers report in it."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, NONE, SHOULD, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section ResourceClaim device status"
API = "API reference: ResourceClaim v1 resource.k8s.io, AllocatedDeviceStatus"
KIB = 1024
ROUND = len('{"long":""}')
IPS = [
    *("10.9.8.1/24", "10.9.8.2/24", "10.9.8.3/24", "10.9.8.4/24", "10.9.8.5/24", "10.9.8.6/24"),
    *("10.9.8.7/24", "10.9.8.8/24", "10.9.8.9/24", "10.9.8.10/24", "10.9.8.11/24", "10.9.8.12/24"),
    *("10.9.8.13/24", "10.9.8.14/24", "10.9.8.15/24", "10.9.8.16/24", "10.9.8.17/24"),
]


@requirement(
    "STATUS-001",
    "The API server must store conditions, data and network data of an allocated device as they were written.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    covers=("DS1",),
    about=CLUSTER,
    mutants=("device-status-dropped", "hardware-addresses-dropped"),
    counts=(1,),
)
def test_device_status_is_read_as_written(scenario):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices
    scenario.apply_status("device_status/everything.yaml", device=device, by="judge")
    claim = scenario.claim("my-device").should_have_condition(device, "Ready")

    assert claim.data(device) == {"speed": "100G", "lanes": [1, 2, 3, 4]}
    assert claim.network_data(device) == {
        "interfaceName": "net1",
        "ips": ["10.9.8.7/24", "2001:db8::1/64"],
        "hardwareAddress": "02:00:5e:10:00:01",
    }


@requirement(
    "STATUS-002",
    "The API server must reject a device status for a device that is not allocated to the claim.",
    level=MUST,
    tier=E2E,
    devices=2,
    spread=True,
    source=API,
    gates=("DRAResourceClaimDeviceStatus",),
    about=CLUSTER,
    mutants=("device-status-dropped",),
    given=("one-class",),
)
def test_only_allocated_devices_have_a_status(scenario, driver):
    scenario.apply("device_status/allocated-claim.yaml")
    others = driver.devices - scenario.claim("my-device").should_be_allocated().devices

    refusal = scenario.status_should_be_refused("device_status/data.yaml", device=max(others), data={})

    assert messages.DEVICE_NOT_ALLOCATED in refusal


@requirement(
    "STATUS-003",
    "The API server must accept 8 conditions for a device and reject one more.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared", "local"),
    about=CLUSTER,
    mutants=("device-status-dropped", "device-status-narrow"),
    counts=(1,),
)
def test_a_device_can_have_eight_conditions(scenario):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices

    refusal = scenario.status_should_be_refused("device_status/conditions.yaml", device=device, count=9)
    assert messages.AT_MOST_8_ITEMS in refusal

    scenario.status_should_be_accepted("device_status/conditions.yaml", device=device, count=8)
    assert len(scenario.claim("my-device").conditions(device)) == 8


@requirement(
    "STATUS-004",
    "The API server must accept a JSON object of up to 10 KiB as the data of a device, and reject anything else.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    about=CLUSTER,
    mutants=("device-status-dropped", "device-status-narrow"),
    counts=(1,),
)
@pytest.mark.parametrize(
    ("taken", "refused", "words"),
    [
        ({"long": "x" * (10 * KIB - ROUND)}, {"long": "x" * (10 * KIB - ROUND + 1)}, messages.TOO_LONG),
        ({"list": [1, 2]}, [1, 2], messages.NOT_JSON_OBJECT),
        ({"text": "text"}, "text", messages.NOT_JSON_OBJECT),
    ],
    ids=["too-long", "a-list", "a-text"],
)
def test_data_is_a_json_object_of_limited_size(scenario, taken, refused, words):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices

    assert words in scenario.status_should_be_refused("device_status/data.yaml", device=device, data=refused)

    scenario.status_should_be_accepted("device_status/data.yaml", device=device, data=taken)
    assert scenario.claim("my-device").data(device) == taken


@requirement(
    "STATUS-005",
    "The API server must reject network data that exceeds its limits, or whose IP addresses are duplicates or not canonical CIDRs.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    about=CLUSTER,
    mutants=("device-status-dropped", "device-status-narrow"),
    counts=(1,),
)
@pytest.mark.parametrize(
    ("taken", "refused", "words"),
    [
        ({"ips": ["10.9.8.7/24"]}, {"ips": ["10.9.8.7"]}, messages.NOT_CIDR),
        ({"ips": ["2001:db8::1/64"]}, {"ips": ["2001:db8:0::1/64"]}, messages.NOT_CANONICAL),
        ({"ips": ["10.9.8.7/24", "10.9.8.8/24"]}, {"ips": ["10.9.8.7/24"] * 2}, messages.DUPLICATE),
        ({"ips": IPS[:16]}, {"ips": IPS}, messages.AT_MOST_16_ITEMS),
        ({"interfaceName": "x" * 256}, {"interfaceName": "x" * 257}, messages.TOO_LONG),
        ({"hardwareAddress": "x" * 128}, {"hardwareAddress": "x" * 129}, messages.TOO_LONG),
    ],
    ids=["no-cidr", "not-canonical", "twice", "too-many", "long-interface-name", "long-hardware-address"],
)
def test_network_data_is_checked(scenario, taken, refused, words):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices

    assert words in scenario.status_should_be_refused("device_status/network.yaml", device=device, network=refused)

    scenario.status_should_be_accepted("device_status/network.yaml", device=device, network=taken)
    assert scenario.claim("my-device").network_data(device) == taken


@requirement(
    "STATUS-006",
    "Device status must be cleared when the claim is deallocated, so that the next pod that uses the claim does not find the old status.",
    level=MUST,
    tier=E2E,
    source=API,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    covers=("G17",),
    mutants=("unprepare-fails",),
    counts=(1,),
)
def test_device_status_is_cleared_with_the_allocation(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices
    scenario.apply_status("device_status/condition.yaml", device=device, by="judge", type="Seen", value=True)
    claim = scenario.claim("my-device").should_have_condition(device, "Seen")

    pod.delete().should_be_gone()
    claim.should_be_deallocated().should_have_no_status_for(device)
    scenario.apply("basic/second-pod.yaml")
    second = scenario.pod("second").should_run()

    assert second.seen_devices == claim.devices
    assert claim.devices_with_condition("Seen") == NONE


@requirement(
    "STATUS-007",
    "Several writers must be able to set conditions of one device by server-side apply without removing each other's conditions.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    about=CLUSTER,
    mutants=("one-condition-only",),
    counts=(1,),
)
def test_several_writers_report_conditions(scenario):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices
    scenario.apply_status("device_status/condition.yaml", device=device, by="network", type="LinkUp", value=True)
    scenario.apply_status("device_status/condition.yaml", device=device, by="storage", type="Mounted", value=True)
    scenario.apply_status("device_status/condition.yaml", device=device, by="network", type="LinkUp", value=False)
    claim = scenario.claim("my-device").should_have_condition(device, "LinkUp", "False")

    assert claim.conditions(device).get("Mounted") == "True"


@requirement(
    "STATUS-008",
    "The API server must reject a server-side apply without force that changes another writer's condition, and name that writer.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Server-Side Apply, section Conflicts",
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    about=CLUSTER,
    mutants=("field-owners-forgotten",),
    counts=(1,),
)
def test_a_writer_cannot_change_the_fields_of_another(scenario):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices
    scenario.apply_status("device_status/condition.yaml", device=device, by="network", type="LinkUp", value=True)

    refusal = scenario.status_should_be_refused(
        "device_status/condition.yaml", device=device, by="storage", type="LinkUp", value=False
    )

    assert 'conflict with "network"' in refusal


@requirement(
    "STATUS-009",
    "A pod must keep running and see its device when a condition in the device status becomes False.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    mutants=("no-env",),
    counts=(1,),
)
def test_device_status_does_not_end_a_pod(scenario):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices

    scenario.apply_status("device_status/condition.yaml", device=device, by="judge", type="Working", value=False)
    pod.should_stay_running()

    assert pod.seen_devices == {device}


@requirement(
    "STATUS-020",
    "A driver that reports device status should set the condition Ready to True for every device that it has prepared.",
    level=SHOULD,
    tier=E2E,
    devices=2,
    source="KEP-4817, Resource Claim Status with possible standardized network interface data",
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    covers=("DS1", "G17"),
    features=("device-status",),
    mutants=("status-never-written", "status-says-not-ready"),
    counts=(2,),
)
def test_the_driver_reports_every_device_as_ready(scenario):
    scenario.apply("basic/several.yaml", count=2)
    one, other = scenario.pod("pod").should_run().devices

    claim = scenario.claim("chosen").should_have_condition(one, "Ready").should_have_condition(other, "Ready")

    assert claim.devices_with_condition("Ready") == {one, other}


@requirement(
    "STATUS-021",
    "A driver that reports device status must not change or remove conditions that others have set.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Server-Side Apply, section Field management",
    gates=("DRAResourceClaimDeviceStatus",),
    given=("unshared",),
    covers=("G17",),
    features=("device-status", "shared-claims"),
    mutants=("status-never-written", "status-replaces-all"),
    counts=(1,),
)
def test_the_driver_keeps_the_conditions_of_other_writers(scenario):
    scenario.apply("device_status/allocated-claim.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices
    scenario.apply_status("device_status/condition.yaml", device=device, by="judge", type="Seen", value=True)

    scenario.apply("basic/second-pod.yaml")
    scenario.pod("second").should_run()
    claim = scenario.claim("my-device").should_have_more_status_for(device, than="Seen")

    assert claim.conditions(device).get("Seen") == "True"


@requirement(
    "STATUS-022",
    "The status that a driver reports for a device should not name any other device of the driver.",
    level=SHOULD,
    tier=E2E,
    source="KEP-4817, Resource Claim Status with possible standardized network interface data",
    gates=("DRAResourceClaimDeviceStatus",),
    features=("device-status", "identity"),
    mutants=(
        "status-of-another-device",
        "status-message-of-another-device",
        "status-sentence-about-another-device",
    ),
    counts=(1,),
)
def test_the_driver_reports_about_the_right_device(scenario, driver):
    scenario.apply("basic/claim-by-name.yaml")
    pod = scenario.pod("pod").should_run()
    (device,) = pod.devices
    claim = scenario.claim("my-device").should_have_device_status()

    assert driver.devices_named_in(claim.status_of(device), pod.node) - {device} == NONE
