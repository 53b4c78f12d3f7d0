"""Counters that a driver publishes for devices that share them. The test creates no objects."""

from testbed.conformance import MUST, NONE, STATIC, requirement


@requirement(
    "PART-010",
    "The driver must publish in the same pool every counter that one of its devices consumes.",
    level=MUST,
    tier=STATIC,
    source="API reference: ResourceSlice v1 resource.k8s.io, DeviceCounterConsumption",
    features=("partitions",),
    gates=("DRAPartitionableDevices",),
    mutants=(
        "counters-missing",
        "counters-of-nobody",
    ),
)
def test_every_counter_is_published(driver):
    assert driver.partitionable_devices, "no devices of the driver consume the same counters"
    assert {missing for each in driver.partitionable_devices for missing in each.missing_counters} == NONE
