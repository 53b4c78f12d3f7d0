from typing import Any

from testbed.onboarding.discovery.facts import PublishedDevice
from testbed.onboarding.discovery.inference.classes import classes_of
from testbed.onboarding.discovery.inference.specials import optional_section, others_section
from tests.onboarding.discovery.shapes import CPU, CPUS, GPU, GPUS, changed, device, device_class

EVERY = device_class("every", f"device.driver == '{GPU}'")
PLAIN = device_class("plain", f"device.driver == '{GPU}' && !('purpose' in device.attributes['{GPU}'])")
TAINTED = device_class("tainted", f"device.attributes['{GPU}'].purpose == 'taints'")
SHARED = device_class("shared", f"device.attributes['{GPU}'].purpose == 'capacity'")
OTHER = device_class("other", "device.driver == 'other.example'")
TAINTS = [
    changed(device(GPU, "node-1", f"t-{effect.lower()}", purpose="taints"), taints=[{"key": "x", "effect": effect}])
    for effect in ("NoSchedule", "NoExecute")
]
CAPACITY = [changed(device(GPU, "node-1", "shared", "24Gi", purpose="capacity"), allowMultipleAllocations=True)]
DEVICES = [*GPUS, *TAINTS, *CAPACITY]


def test_the_class_of_plain_devices_is_the_ordinary_one() -> None:
    found = classes_of(GPU, [EVERY, PLAIN, TAINTED, SHARED, OTHER], DEVICES)
    assert found.ordinary == ("plain",)
    assert found.selected == tuple(GPUS)
    assert found.others == (*TAINTS, *CAPACITY)


def test_special_devices_have_classes_of_their_own() -> None:
    found = classes_of(GPU, [EVERY, PLAIN, TAINTED, SHARED], DEVICES)
    assert optional_section(found, DEVICES) == {
        "capacity": {"class": "shared", "name": "memory", "half": "12Gi"},
        "taints": {"class": "tainted"},
    }
    assert others_section(found) == {"purpose": ["*"]}


def test_a_second_class_of_plain_devices_is_ordinary_if_the_user_says_so() -> None:
    kinds = [device(GPU, "node-1", f"{kind}-{number}", kind=kind) for kind in ("native", "vfio") for number in range(2)]
    classes = [device_class(kind, f"device.attributes['{GPU}'].kind == '{kind}'") for kind in ("native", "vfio")]
    found = classes_of(GPU, classes, kinds)
    assert (found.ordinary, found.further) == (("native",), {"vfio": 2})
    both = classes_of(GPU, classes, kinds, ["vfio"])
    assert (both.ordinary, both.further, both.others) == (("native", "vfio"), {}, ())


def test_shared_devices_are_ordinary_if_there_are_no_others() -> None:
    grouped = [changed(each, allowMultipleAllocations=True, capacity={f"{CPU}/cpu": {"value": "4"}}) for each in CPUS]
    found = classes_of(CPU, [device_class("dra.cpu", f'device.driver == "{CPU}"')], grouped)
    assert found.ordinary == ("dra.cpu",)
    assert optional_section(found, grouped) == {
        "capacity": {"class": "dra.cpu", "perNode": 4, "name": "cpu", "half": "2"}
    }


def test_a_driver_without_a_class_has_none() -> None:
    assert classes_of(GPU, [OTHER], GPUS).ordinary == ()


def test_a_class_that_cannot_be_evaluated_is_named() -> None:
    strange = device_class("strange", f"device.attributes['{GPU}'].exists(name, name == 'uuid')")
    assert classes_of(GPU, [strange, PLAIN], GPUS).unknown == ("strange",)


def test_devices_of_other_kinds_are_told_apart_by_values() -> None:
    kinds = [
        device(GPU, "node-1", f"{kind}-{number}", kind=kind) for kind in ("gpu", "mig", "vfio") for number in range(2)
    ]
    gpus = device_class("gpus", f"device.attributes['{GPU}'].kind == 'gpu'")
    assert others_section(classes_of(GPU, [gpus], kinds)) == {"kind": ["mig", "vfio"]}


def test_an_attribute_that_only_other_devices_have_comes_before_a_value() -> None:
    others = [device(GPU, "node-1", "t", model="OLD", purpose="taints")]
    gpus = device_class("gpus", f"device.attributes['{GPU}'].model == 'LATEST'")
    assert others_section(classes_of(GPU, [gpus], [*GPUS, *others])) == {"purpose": ["*"]}


def test_devices_of_other_kinds_without_a_difference_are_not_guessed() -> None:
    same = [device(GPU, "node-1", "a", kind="gpu"), device(GPU, "node-2", "b", kind="gpu")]
    half = classes_of(GPU, [device_class("all", f"device.driver == '{GPU}'")], same)
    assert others_section(half) == {}
    assert others_section(type(half)(("x",), selected=(same[0],), others=(same[1],))) is None


def test_partitions_are_counted_on_each_node() -> None:
    def part(name: str, amount: str) -> dict[str, Any]:
        counters = {"counterSet": "gpu-0", "counters": {"slots": {"value": amount}}}
        return changed(device(GPU, "node-1", name), consumesCounters=[counters]).content

    parts = [part("whole", "4"), part("left", "2"), part("right", "2")]
    counter_set = {"name": "gpu-0", "counters": {"slots": {"value": "4"}}}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": "node-1", "pool": pool, "devices": parts, "sharedCounters": [counter_set]}
    devices = [*GPUS, *(PublishedDevice(GPU, "node-1", "node-1", each) for each in parts)]
    partitions = device_class("parts", f"device.driver == '{GPU}' && !('model' in device.attributes['{GPU}'])")
    found = classes_of(GPU, [partitions, PLAIN], devices)
    assert optional_section(found, devices, [{"spec": spec}])["partitions"] == {
        "class": "parts",
        "whole": 1,
        "parts": 2,
    }


def test_a_taint_without_effect_makes_no_special_device() -> None:
    noted = [changed(each, taints=[{"key": "note", "effect": "None"}]) for each in GPUS]
    assert optional_section(classes_of(GPU, [EVERY], noted), noted) == {}
