from fake_driver.devices.model import Device
from fake_driver.publishing.counter_placement import beside_devices
from fake_driver.publishing.slices import Owner, desired


def test_slices_without_counters_stay_as_they_are() -> None:
    slices = desired("gpu.example", Owner("n", "u"), (Device("gpu-0", "gpu", {}, {}),))
    assert beside_devices(slices) == slices
