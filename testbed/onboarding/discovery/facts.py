"""What was observed of a driver in a cluster, as plain data. `gathering` and `samples` make it, the findings are drawn from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from testbed.kube.client import Object
from testbed.models.names import short_name
from testbed.onboarding.checks.contents import Contents


@dataclass(frozen=True)
class PublishedDevice:
    """A device in a ResourceSlice. `node` is '' for a network-attached device."""

    driver: str
    pool: str
    node: str
    content: Object = field(hash=False)

    @property
    def name(self) -> str:
        """Return its name in the pool."""
        return str(self.content["name"])

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the values of its attributes, by names without the driver's own domain."""
        found = self.content.get("attributes") or {}
        return {short_name(name, self.driver): next(iter(value.values()), None) for name, value in found.items()}

    @property
    def capacity(self) -> dict[str, str]:
        """Return its capacities as quantities, by names without the driver's own domain."""
        found = self.content.get("capacity") or {}
        return {short_name(name, self.driver): str(each.get("value", "")) for name, each in found.items()}

    def policy(self, capacity: str) -> Object:
        """Return the request policy of a capacity; empty if it has none."""
        found = self.content.get("capacity") or {}
        entries = (each for name, each in found.items() if short_name(name, self.driver) == capacity)
        return next((each.get("requestPolicy") or {} for each in entries), {})


@dataclass(frozen=True)
class DriverPods:
    """A DaemonSet that may be a driver, and its pods. `writes_slices`: its account may create ResourceSlices."""

    daemonset: Object
    pods: tuple[Object, ...] = ()
    writes_slices: bool = False

    @property
    def name(self) -> str:
        """Return the name of the DaemonSet."""
        return str(self.daemonset["metadata"]["name"])


@dataclass(frozen=True)
class ClusterFacts:
    """What a cluster says about its drivers."""

    devices: tuple[PublishedDevice, ...] = ()
    classes: tuple[Object, ...] = ()
    daemonsets: tuple[DriverPods, ...] = ()
    nodes: tuple[Object, ...] = ()
    slices: tuple[Object, ...] = ()

    @property
    def drivers(self) -> tuple[str, ...]:
        """Return the names of the drivers that publish devices, sorted."""
        return tuple(sorted({each.driver for each in self.devices}))


@dataclass(frozen=True)
class Sample:
    """A container, and the devices of its claim; none if it has no claim.

    `cdi` is the content of the CDI files of its node; None if they cannot be read. `refusal` is why its pod did not run, or ''.
    `has_status` and `has_health` are True if the claim's status has data about its devices, and the pod's status their health.
    """

    node: str
    count: int = 0
    contents: Contents = Contents()  # noqa: RUF009 - immutable
    devices: tuple[PublishedDevice, ...] = ()
    claim_uid: str = ""
    cdi: str | None = None
    refusal: str = ""
    has_status: bool = False
    has_health: bool = False


def by_node(devices: Iterable[PublishedDevice]) -> dict[str, list[PublishedDevice]]:
    """Return devices by the name of their node."""
    found: dict[str, list[PublishedDevice]] = {}
    for each in devices:
        found.setdefault(each.node, []).append(each)
    return found
