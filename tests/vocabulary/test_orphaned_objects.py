"""The objects of killed workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.kube.ownership import PROCESS
from testbed.vocabulary.orphaned_objects import delete_orphans
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes.kube import FakeKube


@pytest.fixture
def killed(world: Callable[..., World]) -> World:
    """Return a world whose process was killed."""
    return replace(world(), process="run-gw0")


def _kube(world: World) -> FakeKube:
    kube: Any = world.kube
    return kube  # type: ignore[no-any-return]  # the fixture made it


def test_only_objects_of_a_killed_worker_are_deleted(killed: World) -> None:
    with new_scenario(killed, "T-001") as dead, new_scenario(replace(killed, process="run-gw1"), "T-002") as alive:
        kube = _kube(killed)
        assert kube.objects["Namespace", "default", dead.namespace]["metadata"]["labels"][PROCESS] == "run-gw0"
        assert delete_orphans(killed.kube, killed.owner, "run-gw0".__eq__) == [dead.namespace]
        assert ("Namespace", "default", alive.namespace) in kube.objects
        assert delete_orphans(killed.kube, killed.owner, _of_the_run) == [alive.namespace]
        assert delete_orphans(killed.kube, killed.owner, _of_the_run) == []


def test_a_taint_rule_of_a_killed_worker_is_deleted(killed: World) -> None:
    kube = _kube(killed)
    mine = {"labels": {**killed.owner.mark({"metadata": {}})["metadata"]["labels"], PROCESS: "run-gw0"}}
    kube.put("DeviceTaintRule", "left", metadata=mine)
    assert delete_orphans(killed.kube, killed.owner, "run-gw0".__eq__) == ["left"]
    assert ("DeviceTaintRule", "default", "left") not in kube.objects


def test_an_api_server_without_taint_rules_has_none(killed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = killed.kube.list

    def listed(api_version: str, kind: str, *where: Any, **selectors: str) -> Any:
        if kind == "DeviceTaintRule":
            raise UsageError("the API server has no DeviceTaintRule in resource.k8s.io/v1")
        return known(api_version, kind, *where, **selectors)

    monkeypatch.setattr(killed.kube, "list", listed)
    with new_scenario(killed, "T-001") as dead:
        assert delete_orphans(killed.kube, killed.owner, _of_the_run) == [dead.namespace]


def _of_the_run(process: str) -> bool:
    return process.startswith("run-")
