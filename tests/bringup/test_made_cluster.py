"""The last step of `up`, which checks the components of a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.bringup.steps.made_cluster import MadeClusterProcedure
from testbed.errors import TestbedError
from testbed.providers import provider
from testbed.providers.base import Component


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
