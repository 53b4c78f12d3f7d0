from fake_driver.devices.model import Device
from fake_driver.publishing.counter_placement import with_counters_beside_devices
from fake_driver.publishing.slices import Owner, for_node


def test_slices_without_counters_are_unchanged() -> None:
    slices = for_node("gpu.example", Owner("n", "u"), (Device("gpu-0", "gpu", {}, {}),))
    assert with_counters_beside_devices(slices) == slices
