"""Steps of `up` on a cluster that its provider made: the labels of nodes, and the last check of the components."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.bringup.steps.made_cluster import MadeClusterProcedure
from testbed.errors import TestbedError
from testbed.models.driver_file import Nodes
from testbed.providers import provider
from testbed.providers.base import Component
from tests.fakes.kube import FakeKube


def check(*components: Component) -> None:
    procedure: Any = provider("local").dispatch(maker=MadeClusterProcedure, finder=lambda _: None)
    resolved = SimpleNamespace(config=SimpleNamespace(name="dev"))
    procedure.check_components(
        SimpleNamespace(cluster=SimpleNamespace(components=lambda: components), resolved=resolved)
    )


def test_up_fails_if_a_component_has_exited() -> None:
    running, exited = Component("node-1/kubelet", None, True), Component("node-1/kube-proxy", None, False)

    with pytest.raises(TestbedError, match="node-1/kube-proxy of testbed dev exited"):
        check(running, exited)


def test_up_succeeds_if_all_components_run() -> None:
    check(Component("node-1/kubelet", None, True))


def test_nodes_that_take_pods_get_the_labels_that_drivers_need() -> None:
    kube = FakeKube()
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    kube.put("Node", "control-plane", spec={"taints": [control_plane]})
    kube.put("Node", "worker", spec={}, metadata={"labels": {"kept": "yes"}})
    drivers = [SimpleNamespace(nodes=Nodes(labels=labels)) for labels in ({"a": "1"}, {}, {"b": "2"})]
    procedure: Any = provider("local").dispatch(maker=MadeClusterProcedure, finder=lambda _: None)
    procedure.label_nodes(SimpleNamespace(kube=kube, resolved=SimpleNamespace(drivers=drivers)))

    labels = {each["metadata"]["name"]: each["metadata"].get("labels") for each in kube.list("v1", "Node")}
    assert labels == {"control-plane": None, "worker": {"kept": "yes", "a": "1", "b": "2"}}
