"""The section `devices` of a driver file: what the driver's ordinary devices are like. `driver_file` assembles the sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from testbed.models.names import ObjectName, Quantity
from testbed.models.strict import Strict


class Identity(Strict):
    """How to tell devices apart."""

    attribute: str = Field(min_length=1, description="Attribute whose value only one device has.")
    scope: Literal["node", "cluster"] = Field(
        "node", description="Whether the value is unique among the devices that a node can use, or in the cluster."
    )


class ClaimShape(Strict):
    """Which claims the driver accepts."""

    counts: Literal["any", "all"] | Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = Field(
        "any",
        description="Counts of devices that a request may have: any, all (only all devices of a node), or a list.",
    )
    configuration: Literal["optional", "required"] = Field(
        "optional", description="Whether each claim must have configuration for the driver."
    )
    with_: tuple[ObjectName, ...] = Field(
        (),
        alias="with",
        description="DeviceClasses that each claim must also request. The probe must not show devices that only these classes select.",
    )

    @property
    def is_plain(self) -> bool:
        """Return True if the driver accepts a claim for one device and nothing else."""
        return self == ClaimShape()

    @property
    def count(self) -> int:
        """Return how many devices the smallest request has; with `all`, 1 for all devices of a node."""
        return 1 if isinstance(self.counts, str) else min(self.counts)

    @property
    def request(self) -> dict[str, int | str]:
        """Return the fields of a request that is as small as possible."""
        if self.counts == "all":
            return {"allocationMode": "All"}
        return {} if self.count == 1 else {"count": self.count}

    def accepts(self, count: int | Literal["all"]) -> bool:
        """Return True if a request may have this many devices, or all of a node."""
        return self.counts in ("any", count) or (not isinstance(self.counts, str) and count in self.counts)


class Expect(Strict):
    """What the ResourceSlices must say about each ordinary device. A name without a domain belongs to the driver's own domain."""

    attributes: dict[str, str | int | bool] = Field(default_factory=dict, description="Attributes with their values.")
    capacity: dict[str, Quantity] = Field(default_factory=dict, description="Capacities with their amounts.")


class Examples(Strict):
    """Names of attributes and capacities that tests request. A name without a domain belongs to the driver's own domain."""

    MOVED: ClassVar[Mapping[str, str]] = {"matchAttribute": "spec.devices.examples.match"}

    attribute: str = Field("", description="Attribute that every device has, such as model.")
    capacity: str = Field("", description="Capacity that every device has, such as memory.")
    match_attribute: str = Field(
        "", alias="match", description="Attribute with the same value for some devices of a node, such as pcieRoot."
    )


class Devices(Strict):
    """What the driver's ordinary devices are like. Requirements check it in the ResourceSlices."""

    classes: tuple[ObjectName, ...] = Field(
        min_length=1, description="DeviceClasses that select the driver's ordinary devices."
    )
    belong_to: Literal["node", "network"] = Field(
        "node", description="node: each device belongs to one node. network: devices are network-attached."
    )
    per_node: int = Field(1, ge=1, description="Ordinary devices that each node can use, at least.")
    identity: Identity | None = Field(None, description="Absent: devices cannot be told apart by an attribute.")
    claim: ClaimShape = ClaimShape()
    expect: Expect = Expect()
    examples: Examples = Examples()
    others: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Devices that none of the classes selects: attributes with shell patterns (*, ?) of their values.",
    )
