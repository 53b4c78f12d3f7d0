"""Sections of a driver file: tolerations, optional features, configuration, control, known failures. `driver_file` assembles them."""

from __future__ import annotations

import re
from datetime import date
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
    operator: Literal["Equal", "Exists"] = Field(
        "Equal", description="Equal: the taint has the value. Exists: it may have any value."
    )
    value: str = Field("", description="Value of the taint.")
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


class Classes(Strict):
    """The DeviceClasses of a driver file's `optional` section. Not a section of its own."""

    taints: str | None = None
    partitions: str | None = None
    capacity: str | None = None
    binding: str | None = None
    unhealthy: str | None = None


class SpecialClass(Strict):
    """A DeviceClass whose devices have an optional feature. Tests read everything else about these devices from ResourceSlices."""

    device_class: ObjectName = Field(alias="class", description="Name of the DeviceClass.")


class Partitions(SpecialClass):
    """The class of partitionable devices, whose partitions consume shared counters, and how many each node has."""

    whole: int = Field(
        0, ge=0, description="Devices on each node, at least, that exclude all others that consume the same counters."
    )
    parts: int = Field(0, ge=0, description="Other devices of the class on each node, at least.")


class SharedCapacity(SpecialClass):
    """The class of devices that several claims can share, each with a part of the capacity, and amounts that tests request."""

    per_node: int = Field(1, ge=1, description="Devices of the class on each node, at least.")
    capacity: str = Field(alias="name", min_length=1, description="Capacity that claims share, such as memory.")
    half: Quantity = Field(description="Amount that fits into a device twice, but not three times.")
    uneven: Quantity = Field("", description="Amount that the device's request policy rounds up.")
    rounded: Quantity = Field("", description="Result of rounding `uneven`.")
    too_much: Quantity = Field(
        "", description="Amount that a device has, but that its request policy does not allow for one claim."
    )

    @model_validator(mode="after")
    def _check_rounding(self) -> SharedCapacity:
        if bool(self.uneven) != bool(self.rounded):
            raise ValueError("has only one of uneven and rounded, but needs both or neither")
        return self


class OptionalFeatures(Strict):
    """DeviceClasses with special devices. Naming a class declares its feature."""

    taints: SpecialClass | None = Field(
        None,
        description="Class of devices that the driver taints: at least one with NoSchedule and one with NoExecute.",
    )
    partitions: Partitions | None = None
    capacity: SharedCapacity | None = None
    binding: SpecialClass | None = Field(
        None, description="Class of devices with binding conditions that only the test sets to true."
    )
    unhealthy: SpecialClass | None = Field(None, description="Class of devices that the driver reports as unhealthy.")


class Setting(Strict):
    """One configuration of a device, and how a container shows that it was applied."""

    parameters: dict[str, Any] = Field(description="Opaque parameters, as in a claim.")
    shows: Annotated[str, AfterValidator(check_regex)] = Field(
        description="Regular expression for a line of the command's output: one for each device that has the setting."
    )


class InvalidConfiguration(Strict):
    """A configuration that the driver must refuse."""

    parameters: dict[str, Any] = Field(description="Opaque parameters with one invalid field.")
    field: str = Field(min_length=1, description="Name of the invalid field, as in the driver's error message.")


class Configuration(Strict):
    """Two configurations of the driver's devices with the command that shows which one a container has, and one that it refuses."""

    command: tuple[str, ...] | None = Field(None, min_length=1, description="Command that runs in the container.")
    precedence: Literal["claim", "class", "none"] | None = Field(
        None,
        description="Entry that the driver applies if several contradict each other. An allocation lists those of the class first. "
        "claim: the last entry. class: the first entry. none or absent: it is not judged.",
    )
    one: Setting | None = Field(None, description="A configuration that a container shows.")
    other: Setting | None = Field(None, description="Another configuration. A device cannot have both.")
    invalid: InvalidConfiguration | None = Field(None, description="A configuration that the driver must refuse.")

    @model_validator(mode="after")
    def _check_that_it_can_be_judged(self) -> Configuration:
        if self.other and not self.one:
            raise ValueError("has other, which requires one")
        if bool(self.command) != bool(self.one):
            raise ValueError("has only one of command and one; a configuration that a container shows needs both")
        if not (self.one or self.invalid):
            raise ValueError("has neither one nor invalid, so there is nothing to judge")
        if self.precedence and not self.other:
            raise ValueError("has a precedence, which requires command, one and other")
        return self

    @property
    def settings(self) -> dict[str, Setting]:
        """Return the settings that a container shows, by their names: one, other."""
        return {name: each for name, each in (("one", self.one), ("other", self.other)) if each}

    def shown(self, output: str) -> tuple[str, ...]:
        """Return one or other for each line of a command's output that shows it, sorted."""
        found = ((name, re.findall(each.shows, output, re.MULTILINE)) for name, each in self.settings.items())
        return tuple(sorted(name for name, lines in found for _ in lines))


class Control(Strict):
    """How tests change the driver's hardware while it runs."""

    command: tuple[str, ...] = Field(
        min_length=1,
        description="Command that runs in the driver's container, with a verb and its arguments as docs/live-control.md defines them.",
    )


class Budgets(Strict):
    """Limits for the driver, which profiles `scale` and `sanity` judge."""

    prepare_p99: str = Field(
        "",
        alias="prepareP99",
        pattern=r"^\d+(\.\d+)?(ms|s)$",
        description="99% of prepare calls end in this time, such as 2s.",
    )
    writes_per_change: int | None = Field(
        None, ge=1, description="Writes of ResourceSlices for one change of a device."
    )


class Known(Strict):
    """A failure that the vendor knows of. Reports show it; it never makes a driver conformant."""

    id: str = Field(pattern=r"^[A-Z][A-Z0-9]*-\d{3}$", description="ID of the requirement, such as PREP-004.")
    reason: str = Field(min_length=1, description="Why the driver fails it.")
    link: str = Field("", description="Address of the issue.")
    until: date | None = Field(None, description="Last day on which the failure is accepted, such as 2027-03-01.")
