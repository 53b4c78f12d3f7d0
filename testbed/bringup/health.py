"""The current status of a testbed: processes, nodes, driver, devices. For `status`; it works without an API server too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.bringup import state
from testbed.bringup.state import Phase, Record
from testbed.bringup.testbeds import attach
from testbed.errors import TestbedError
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.models.driver_file import load_companions
from testbed.models.status import ComponentStatus, DriverStatus, NodeStatus, OwnerProcess, TestbedPhase, TestbedStatus
from testbed.providers import provider
from testbed.providers.base import Component


def status_of(name: str) -> TestbedStatus:
    """Return the status of one testbed."""
    record = state.require(name)
    components: list[Component] = []
    problems: list[str] = []
    try:
        components = _components(record)
        problems += [f"{part.name} does not run" for part in components if not part.alive]
    except TestbedError as lost:  # the container engine may be down, although the testbed exists
        problems.append(lost.what)
    nodes: list[NodeStatus] = []
    driver, companions = None, tuple[DriverStatus, ...]()
    kubeconfig: Path | None = None
    spec = record.config.get("spec")
    kubernetes = str(spec.get("kubernetes", "")) if isinstance(spec, dict) else ""
    if record.phase is Phase.READY:
        try:
            testbed = attach(name)
            kubeconfig = testbed.folder / "kubeconfig"
            kubernetes = features.version(testbed.kube)
            nodes = [_node(node) for node in testbed.kube.list("v1", "Node")]
            problems += [f"node {node.name} is not ready" for node in nodes if not node.ready]
            if testbed.driver_file:
                driver = _driver(testbed.kube, testbed.driver_file.driver)
                beside = load_companions(testbed.driver_file)
                companions = tuple(_driver(testbed.kube, each.driver) for each in beside)
        except TestbedError as lost:
            problems.append(lost.what)
    if record.abandoned:
        problems.append(state.KILLED)
    return TestbedStatus(
        name=name,
        provider=record.provider,
        kubernetes=kubernetes,
        phase=TestbedPhase.BROKEN if problems else TestbedPhase(record.phase),
        owner=OwnerProcess(pid=record.owner_pid, alive=record.owner_alive),
        kubeconfig=kubeconfig,
        nodes=tuple(nodes),
        driver=driver,
        companions=companions,
        components=tuple(
            ComponentStatus(name=part.name, pid=part.process.pid if part.process else None, alive=part.alive)
            for part in components
        ),
        problems=tuple(dict.fromkeys(problems)),
    )


def _components(record: Record) -> list[Component]:
    cluster = provider(record.provider).attach(record.name, state.cluster_folder(record.name))
    return list(cluster.components()) if cluster else []


def _node(node: dict[str, Any]) -> NodeStatus:
    status = node.get("status", {})
    address = next((a["address"] for a in status.get("addresses", []) if a["type"] == "InternalIP"), "")
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
    return NodeStatus(name=node["metadata"]["name"], ready=ready, address=address)


def _driver(kube: Kube, name: str) -> DriverStatus:
    slices = kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={name}")
    return DriverStatus(
        name=name,
        nodes_with_slices=tuple(sorted({str(s["spec"]["nodeName"]) for s in slices if s["spec"].get("nodeName")})),
        slices=len(slices),
        devices=sum(len(s["spec"].get("devices", [])) for s in slices),
    )
