"""The model of what `dra-testbed status -o json` prints. Its format is part of the API version."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Literal

from pydantic import Field

from testbed.models.strict import Published


class TestbedPhase(enum.StrEnum):
    """The phase of a testbed."""

    __test__ = False

    CREATING = "creating"
    READY = "ready"
    BROKEN = "broken"
    DELETING = "deleting"


class OwnerProcess(Published):
    """The process that created the testbed."""

    pid: int
    alive: bool


class NodeStatus(Published):
    """The status of one node."""

    name: str
    ready: bool
    address: str = ""


class DriverStatus(Published):
    """What a driver publishes."""

    name: str
    nodes_with_slices: tuple[str, ...] = Field((), description="Nodes with ResourceSlices of the driver.")
    slices: int = Field(0, ge=0)
    devices: int = Field(0, ge=0)


class ComponentStatus(Published):
    """The status of one process of the cluster."""

    name: str
    pid: int | None = None
    alive: bool

    @property
    def state(self) -> str:
        """Return the state as text. A process outside of this host has no pid."""
        if not self.alive:
            return "dead"
        return f"pid {self.pid}" if self.pid else "runs"


class TestbedStatus(Published):
    """The status of a testbed."""

    __test__ = False

    api_version: Literal["dra-testbed/v1alpha1"] = "dra-testbed/v1alpha1"
    kind: Literal["TestbedStatus"] = "TestbedStatus"
    name: str
    provider: str
    kubernetes: str
    phase: TestbedPhase
    owner: OwnerProcess | None = None
    kubeconfig: Path | None = None
    nodes: tuple[NodeStatus, ...] = ()
    driver: DriverStatus | None = None
    companions: tuple[DriverStatus, ...] = Field(
        (), description="Drivers that are installed with the driver under test."
    )
    components: tuple[ComponentStatus, ...] = ()
    problems: tuple[str, ...] = Field((), description="Problems, each with a hint.")

    def as_text(self) -> str:
        """Return the status as text: a line for the testbed, its parts below, problems last."""
        lines = [f"{self.name}  {self.phase}  {self.provider}, Kubernetes {self.kubernetes}"]
        if self.kubeconfig:
            lines.append(f"  kubeconfig  {self.kubeconfig}")
        lines += [
            f"  node        {node.name}  {'ready' if node.ready else 'not ready'}  {node.address}"
            for node in self.nodes
        ]
        for driver in filter(None, (self.driver, *self.companions)):
            seen = f"on {len(driver.nodes_with_slices)} nodes, {driver.slices} slices, {driver.devices} devices"
            lines.append(f"  driver      {driver.name}  {seen}")
        lines += [f"  component   {part.name}  {part.state}" for part in self.components]
        lines += [f"  problem     {problem}" for problem in self.problems]
        return "\n".join(line.rstrip() for line in lines)
