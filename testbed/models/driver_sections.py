"""The sections of a driver file about devices and their control; `driver_file` assembles them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from testbed.models.names import ObjectName, Quantity
from testbed.models.strict import Strict


def check_regex(text: str) -> str:
    """Return a regular expression unchanged. Raise ValueError if it is not valid."""
    try:
        re.compile(text)
    except re.error as bad:
        raise ValueError(f"is not a valid regular expression: {bad}") from bad
    return text


class Toleration(Strict):
    """A toleration of the tests' pods, as in the spec of a pod."""

    key: str = Field("", description="Key of the taint. Absent: every taint, with operator Exists.")
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint. Absent: every effect."
    )
    toleration_seconds: int | None = Field(
        None, description="Seconds for which a NoExecute taint is tolerated. Absent: forever."
    )

    @model_validator(mode="after")
    def _check_as_kubernetes_does(self) -> Toleration:
        if not self.key and self.operator != "Exists":
            raise ValueError("has no key, which requires operator: Exists")
        if self.value and self.operator == "Exists":
            raise ValueError("has a value, which operator: Exists does not allow")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("has tolerationSeconds, which requires effect: NoExecute")
        return self


class Examples(Strict):
    """Names of attributes and capacities that tests request. A name without a domain belongs to the driver's own domain."""

    attribute: str = Field("", description="Attribute that every device has, such as model.")
    capacity: str = Field("", description="Capacity that every device has, such as memory.")
    match_attribute: str = Field(
        "", description="Attribute with the same value for some devices of a node, such as pcieRoot."
    )


class Classes(Strict):
    """DeviceClasses whose devices have optional features. Tests read everything else about these devices from ResourceSlices."""

    taints: ObjectName | None = Field(
        None,
        description="Class of devices that the driver taints: at least one with NoSchedule and one with NoExecute.",
    )
    partitions: ObjectName | None = Field(
        None, description="Class of partitionable devices, whose partitions consume shared counters."
    )
    capacity: ObjectName | None = Field(
        None, description="Class of devices that several claims can share, each with a part of the capacity."
    )
    binding: ObjectName | None = Field(
        None, description="Class of devices with binding conditions that only the test sets to true."
    )
    unhealthy: ObjectName | None = Field(None, description="Class of devices that the driver reports as unhealthy.")


class Sharing(Strict):
    """Amounts that tests request from the devices of `classes.capacity`."""

    capacity: str = Field(min_length=1, description="Capacity that claims share, such as memory.")
    half: Quantity = Field(description="Amount that fits into a device twice, but not three times.")
    uneven: Quantity = Field("", description="Amount that the device's request policy rounds up.")
    rounded: Quantity = Field("", description="Result of rounding `uneven`.")
    too_much: Quantity = Field(
        "", description="Amount that a device has, but that its request policy does not allow for one claim."
    )


class Setting(Strict):
    """One configuration of a device, and how a container shows that it was applied."""

    parameters: dict[str, Any] = Field(description="Opaque parameters, as in a claim.")
    shows: Annotated[str, AfterValidator(check_regex)] = Field(
        description="Regular expression for a line of the command's output."
    )


class InvalidConfiguration(Strict):
    """A configuration that the driver must refuse."""

    parameters: dict[str, Any] = Field(description="Opaque parameters with one invalid field.")
    field: str = Field(min_length=1, description="Name of the invalid field, as in the driver's error message.")


class Configuration(Strict):
    """Two configurations of the driver's devices, one that it refuses, and the command that shows which one a container has."""

    command: tuple[str, ...] = Field(min_length=1, description="Command that runs in the container.")
    one: Setting
    other: Setting = Field(description="Another configuration. A device cannot have both.")
    invalid: InvalidConfiguration
    precedence: Literal["claim", "class", "none"] | None = Field(
        None,
        description="Entry that the driver applies if several contradict each other. An allocation lists those of the class first. "
        "claim: the last entry. class: the first entry. none or absent: it is not judged.",
    )

    def shown(self, output: str) -> frozenset[str]:
        """Return the settings that a command's output shows: one, other."""
        settings = {"one": self.one, "other": self.other}
        return frozenset(name for name, each in settings.items() if re.search(each.shows, output, re.MULTILINE))


class Control(Strict):
    """How tests change the driver's hardware while it runs."""

    command: tuple[str, ...] = Field(
        min_length=1,
        description="Command that runs in the driver's container, with a verb and its arguments as docs/live-control.md defines them.",
    )
