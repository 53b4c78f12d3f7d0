"""A world in memory, and waits that end at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import folders
from testbed.images.basics import WORKLOAD
from testbed.vocabulary import budgets
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.world import World
from testbed.waiting import Budget, set_patience
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

RUNS = {"name": "c", "state": {"running": {}}, "restartCount": 0}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    set_patience(0.001)
    for name in ("STAYS", "STAYS_UNBOUND"):  # which patience does not shorten
        monkeypatch.setattr(budgets, name, Budget("state stays", 0.002, "a test"))
    yield
    set_patience(1.0)


@pytest.fixture
def world() -> Callable[..., World]:
    def make(fault: str = "", manifests: Path | None = None) -> World:
        made = cluster.make(fault)
        where = manifests or folders.data("manifests") / "suites"
        return World(made.owner, made.kube, made.driver_file, where, WORKLOAD.reference)  # type: ignore[arg-type]  # the fake

    return make


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def pod(world: Callable[..., World]) -> Callable[..., Pod]:
    """Return a function that makes a pod which no controller, scheduler or kubelet processes."""

    def make(*statuses: Any, name: str = "p", node: str = "node-1", **status: Any) -> Pod:
        here = world()
        kube: Any = here.kube
        kube.react = lambda _kube: None
        spec = {"containers": [{"name": "c"}], **({"nodeName": node} if node else {})}
        content = {"phase": "Running" if statuses else "Pending", "containerStatuses": list(statuses), **status}
        kube.put("Pod", name, "here", spec=spec, status=content, metadata={"uid": "one"})
        return Pod(here, "here", name)

    return make


def kube_of(pod: Pod) -> Any:
    """Return the fake cluster of a pod."""
    return pod.world.kube
