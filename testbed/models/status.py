"""What `dra-testbed status -o json` prints. A published shape: a change of it is a change of the version."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Literal

from pydantic import Field

from testbed.models.strict import Published


class TestbedPhase(enum.StrEnum):
    """How a testbed is."""

    __test__ = False

    CREATING = "creating"
    READY = "ready"
    BROKEN = "broken"
    DELETING = "deleting"


class OwnerProcess(Published):
    """The process that made the testbed."""

    pid: int
    alive: bool


class NodeStatus(Published):
    """One node."""

    name: str
    ready: bool
    address: str = ""


class DriverStatus(Published):
    """What is seen of the driver."""

    name: str
    nodes_with_slices: tuple[str, ...] = Field((), description="the nodes on which it has published devices")
    slices: int = Field(0, ge=0)
    devices: int = Field(0, ge=0)


class ComponentStatus(Published):
    """One process of the cluster."""

    name: str
    pid: int | None = None
    alive: bool

    @property
    def state(self) -> str:
        """In a word or two; what is no process of this host has no pid."""
        if not self.alive:
            return "dead"
        return f"pid {self.pid}" if self.pid else "runs"


class TestbedStatus(Published):
    """A testbed as it is now."""

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
    companions: tuple[DriverStatus, ...] = Field((), description="the drivers beside the one under test")
    components: tuple[ComponentStatus, ...] = ()
    problems: tuple[str, ...] = Field((), description="what is wrong, each with what to try")

    def as_text(self) -> str:
        """For people: the testbed in one line, its parts below, what is wrong last."""
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
