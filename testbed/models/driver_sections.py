"""What a driver file may say of devices, so that suites can ask for them: examples, classes, amounts, configuration. For `driver_file`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from testbed.models.names import ObjectName
from testbed.models.strict import Strict


class Examples(Strict):
    """Names of what the driver publishes about its devices, so that suites can ask for some of them; no domain means the driver's own."""

    attribute: str = Field("", description="an attribute that every device has, like model")
    capacity: str = Field("", description="a capacity that every device has, like memory")
    match_attribute: str = Field(
        "", description="an attribute by which some devices of a node belong together, like pcieRoot"
    )


class Classes(Strict):
    """DeviceClasses with devices for optional parts of DRA. What a suite has to know of such devices it reads from their ResourceSlices."""

    taints: ObjectName | None = Field(
        None, description="devices that the driver taints, one with NoSchedule and one with NoExecute"
    )
    partitions: ObjectName | None = Field(
        None, description="devices that can be had whole or in parts, which draw from shared counters"
    )
    capacity: ObjectName | None = Field(
        None, description="devices that several claims share, each with a part of their capacity"
    )
    binding: ObjectName | None = Field(
        None, description="devices with binding conditions, which nobody but the test makes true"
    )
    unhealthy: ObjectName | None = Field(None, description="devices of which the driver says that they are not well")


class Sharing(Strict):
    """Amounts for the devices of `classes.capacity`, so that suites can ask for parts of them."""

    capacity: str = Field(min_length=1, description="the capacity that claims share, like memory")
    half: str = Field(min_length=1, description="an amount of which a device has room for two and not for three")
    uneven: str = Field("", description="an amount that has to be rounded up")
    rounded: str = Field("", description="what becomes of it")
    too_much: str = Field("", description="more than a claim may have, though a device has as much")


class Configuration(Strict):
    """Opaque configuration for one device, and how a container shows that its device has it."""

    parameters: dict[str, Any] = Field(min_length=1, description="as users write them into a claim")
    shows: str = Field(min_length=1, description="a text in the output of the probe's command, and only then")
