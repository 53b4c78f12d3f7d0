"""The status as JSON and as text."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.models.status import ComponentStatus, DriverStatus, NodeStatus, OwnerProcess, TestbedPhase, TestbedStatus

STATUS = TestbedStatus(
    name="mine",
    provider="local",
    kubernetes="1.37",
    phase=TestbedPhase.BROKEN,
    owner=OwnerProcess(pid=7, alive=True),
    kubeconfig=Path("/state/mine/kubeconfig"),
    nodes=(NodeStatus(name="node-1", ready=True, address="10.0.0.2"), NodeStatus(name="node-2", ready=False)),
    driver=DriverStatus(name="gpu.example.com", nodes_with_slices=("node-1",), slices=1, devices=4),
    companions=(DriverStatus(name="nic.example.com", nodes_with_slices=("node-1",), slices=1, devices=2),),
    components=(ComponentStatus(name="etcd", pid=8, alive=False),),
    problems=("etcd does not run",),
)


def test_json_has_camel_case_keys() -> None:
    data = json.loads(STATUS.model_dump_json(by_alias=True))

    assert data["kind"] == "TestbedStatus"
    assert data["phase"] == "broken"
    assert data["kubeconfig"] == "/state/mine/kubeconfig"
    assert data["driver"]["nodesWithSlices"] == ["node-1"]


def test_text_has_a_line_for_each_part_and_problems_last() -> None:
    assert STATUS.as_text().splitlines() == [
        "mine  broken  local, Kubernetes 1.37",
        "  kubeconfig  /state/mine/kubeconfig",
        "  node        node-1  ready  10.0.0.2",
        "  node        node-2  not ready",
        "  driver      gpu.example.com  on 1 nodes, 1 slices, 4 devices",
        "  driver      nic.example.com  on 1 nodes, 1 slices, 2 devices",
        "  component   etcd  dead",
        "  problem     etcd does not run",
    ]
