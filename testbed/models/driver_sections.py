"""What a driver file may say of devices and their control, so that suites can ask for them and change them. For `driver_file`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from testbed.models.names import ObjectName, Quantity
from testbed.models.strict import Strict


def check_regex(text: str) -> str:
    """A regular expression; anything else is an error of whoever wrote it."""
    try:
        re.compile(text)
    except re.error as bad:
        raise ValueError(f"is not a regular expression: {bad}") from bad
    return text


class Toleration(Strict):
    """A taint of nodes that the tests' pods tolerate, as in the spec of a pod."""

    key: str = Field("", description="absent means every taint, with operator: Exists")
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="absent means every effect"
    )
    toleration_seconds: int | None = Field(None, description="how long a taint of effect NoExecute is tolerated")

    @model_validator(mode="after")
    def _as_kubernetes_takes_it(self) -> Toleration:
        if not self.key and self.operator != "Exists":
            raise ValueError("has no key, which goes with operator: Exists alone")
        if self.value and self.operator == "Exists":
            raise ValueError("has a value, which operator: Exists does not look at")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("has tolerationSeconds, which need effect: NoExecute")
        return self


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
    half: Quantity = Field(description="an amount of which a device has room for two and not for three")
    uneven: Quantity = Field("", description="an amount that has to be rounded up")
    rounded: Quantity = Field("", description="what becomes of it")
    too_much: Quantity = Field("", description="more than a claim may have, though a device has as much")


class Setting(Strict):
    """One way to configure a device, and the line that a container shows where its device is so configured."""

    parameters: dict[str, Any] = Field(description="opaque parameters, as they stand in a claim")
    shows: Annotated[str, AfterValidator(check_regex)] = Field(
        description="regular expression for a line of the command's output"
    )


class InvalidConfiguration(Strict):
    """A configuration that the driver has to refuse."""

    parameters: dict[str, Any] = Field(description="opaque parameters with a mistake in one field")
    field: str = Field(min_length=1, description="what the refusal says about where the mistake is")


class Configuration(Strict):
    """How the driver's devices are configured, and how that shows in a container."""

    command: tuple[str, ...] = Field(min_length=1, description="run in the container")
    one: Setting
    other: Setting = Field(description="a device that is configured so is not configured like `one`")
    invalid: InvalidConfiguration

    def shown(self, output: str) -> frozenset[str]:
        """Which of the two a command's output shows: one, other."""
        settings = {"one": self.one, "other": self.other}
        return frozenset(name for name, each in settings.items() if re.search(each.shows, output, re.MULTILINE))


class Control(Strict):
    """How the driver's hardware is changed while it runs."""

    command: tuple[str, ...] = Field(
        min_length=1,
        description="run in the driver's container with a verb and its arguments, as docs/live-control.md says",
    )
