from __future__ import annotations

import copy

from fake_driver.devices.model import CounterConsumption, Device, Pool, Taint
from fake_driver.publishing.disabled_features import (
    dropped_fields,
    feature_gates,
    only_lacks_fields,
    without_list_attributes,
    without_overlapping_devices,
)
from fake_driver.publishing.slices import Object, Owner, for_network, for_node

NODE = Owner("worker", "node-uid")
DRIVER = "gpu.example"


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(Device(f"gpu-{index}", "gpu", {"model": "a"}, {"memory": "80Gi"}) for index in range(count))


def tainted(*taints: Taint) -> list[Object]:
    return for_node(DRIVER, NODE, [Device("gpu-0", "gpu", {}, {}, taints)])


def test_dropped_fields_are_named_by_their_path() -> None:
    (sent,) = for_node(DRIVER, NODE, gpus(1))
    stored = copy.deepcopy(sent)
    del stored["spec"]["devices"][0]["capacity"]
    assert dropped_fields(sent, stored) == ["spec.devices[0].capacity.memory.value"]
    assert dropped_fields(sent, sent) == []


def test_missing_fields_are_distinguished_from_other_differences() -> None:
    (sent,) = tainted(Taint("a", "NoSchedule"))
    stored = copy.deepcopy(sent)
    assert not only_lacks_fields(stored, sent)
    del stored["spec"]["devices"][0]["taints"]
    assert only_lacks_fields(stored, sent)
    stored["spec"]["devices"][0]["name"] = "gpu-9"
    assert not only_lacks_fields(stored, sent)


def test_each_dropped_field_has_a_feature_gate() -> None:
    fields = [
        "spec.devices[0].taints[0].key",
        "spec.devices[1].attributes.l.ints[0]",
        "spec.devices[0].attributes.taint.int",
    ]
    assert feature_gates(fields) == ["DRADeviceTaints", "DRAListTypeAttributes"]


def test_list_attributes_are_left_out() -> None:
    (sent,) = for_node(DRIVER, NODE, (Device("gpu-0", "gpu", {"l": (1, 2), "i": 1}, {}),))
    (less,) = without_list_attributes([sent])
    assert less["spec"]["devices"][0]["attributes"] == {"i": {"int": 1}}
    assert without_list_attributes([less]) == [less]
    assert without_list_attributes(for_node(DRIVER, NODE, ())) == for_node(DRIVER, NODE, ())


def drawing(name: str, compute: int) -> Device:
    return Device(
        name,
        "gpu",
        {},
        {},
        consumes_counters=(CounterConsumption("gpu-0", {"compute": str(compute)}, {"compute": "7"}),),
    )


WHOLE, PARTS = drawing("gpu-0", 7), tuple(drawing(f"gpu-0-3g-{index}", 3) for index in range(3))


def fitted(*devices: Device) -> list[str]:
    slices = without_overlapping_devices(for_network(DRIVER, [Pool("near", devices), Pool("far", devices)]))
    names = [
        [one["name"] for each in slices for one in each["spec"].get("devices", ()) if each["spec"]["pool"]["name"] == pool]
        for pool in ("near", "far")
    ]  # fmt: skip
    assert names[0] == names[1]
    return names[0]


def test_devices_that_share_hardware_with_earlier_ones_are_left_out() -> None:
    other = Device("gpu-1", "gpu", {}, {})
    assert fitted(WHOLE, *PARTS, other) == ["gpu-0", "gpu-1"]
    assert fitted(*PARTS, other) == ["gpu-0-3g-0", "gpu-0-3g-1", "gpu-1"]
    assert fitted(*gpus(3)) == ["gpu-0", "gpu-1", "gpu-2"]


def test_a_slice_without_remaining_devices_has_no_devices_field() -> None:
    full = for_node(DRIVER, NODE, (*gpus(0), WHOLE, *(drawing(f"gpu-0-1g-{index}", 1) for index in range(100))))
    less = without_overlapping_devices(full)
    assert [each["metadata"] for each in less] == [each["metadata"] for each in full]
    assert "devices" not in less[1]["spec"]
    assert less[2] == full[2]
