"""What is remembered between failed tests, and how far repairs go."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.plugin.canaries import repair
from testbed.plugin.canaries.findings import CanaryState
from testbed.plugin.canaries.surroundings import FailedTest, Surroundings
from testbed.providers.base import Capability
from tests.fakes import cluster

_ABLE = frozenset({Capability.MAKE_OBJECTS, Capability.RESTART_CONTROL_PLANE})


class Place:
    """A testbed with processes that a test can end, and what looks at it."""

    def __init__(self, folder: Path, able: frozenset[Capability] = _ABLE) -> None:
        self.made: Any = cluster.make()
        self.cluster: Any = self.made.cluster
        object.__setattr__(self.cluster, "capabilities", able)
        self.folder = folder
        self.surroundings = Surroundings(lambda: self.made, self.made.driver_file, "run-canary")

    def examine(self, began: float, ended: float, interrupted_by: str = "", *, judges_cluster: bool = False) -> Any:
        test = FailedTest(began, ended, ["node-1"], [], self.folder, interrupted_by, judges_cluster)
        return self.surroundings.examine(test)

    @property
    def canaries(self) -> list[str]:
        return [name for kind, name, _ in self.made.kube.applied if kind == "Namespace"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    return Place(tmp_path)


def test_tests_that_ran_while_a_component_was_broken_are_interrupted_too(place: Place) -> None:
    now = time.time()
    place.cluster.dead.append("control-plane/kube-scheduler")
    assert place.examine(now - 60, now).component == "kube-scheduler"
    beside = place.examine(now - 30, time.time() + 1)
    assert (beside.component, beside.is_repaired) == ("kube-scheduler", True)
    assert place.examine(time.time(), time.time() + 1) is None


def test_one_look_serves_all_failures_before_it(place: Place) -> None:
    now = time.time()
    assert place.examine(now - 9, now - 1) is None
    assert (place.folder / "canaries.txt").read_text() == "on node-1: canary pod: Running on node-1\n"
    assert place.examine(now - 8, now - 2) is None
    assert len(place.canaries) == 1
    assert place.examine(now, time.time() + 1) is None
    assert len(place.canaries) == 2


def test_a_component_that_works_without_the_test_is_the_drivers_failure(place: Place) -> None:
    place.cluster.dead.append("control-plane/kube-scheduler")
    found = place.examine(time.time() - 0.3, time.time(), "kube-scheduler")
    assert found.by_driver
    assert "it failed in this test before (kube-scheduler), and not in 0 s without the test" in found.text


def test_a_component_that_cannot_be_restarted_is_not_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    place = Place(tmp_path, frozenset({Capability.MAKE_OBJECTS}))
    place.cluster.dead.append("node-1/kubelet")
    found = place.examine(time.time() - 1, time.time())
    assert not found.is_repaired
    assert (
        "kubelet on node-1 cannot be restarted: the cluster, or --allow, does not support restart-kubelet" in found.text
    )


def test_the_api_server_is_restarted_after_etcd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.waiting._patience", 0.001)
    place = Place(tmp_path, _ABLE | {Capability.RESTART_API_SERVER})
    place.cluster.dead.append("control-plane/etcd")
    found = place.examine(time.time() - 1, time.time())
    assert (found.component, found.is_repaired) == ("etcd", True)
    assert place.cluster.restarted == ["etcd", "kube-apiserver"]


def test_nothing_is_looked_at_where_nothing_may_be_created(tmp_path: Path) -> None:
    place = Place(tmp_path, frozenset())
    place.cluster.dead.append("node-1/kubelet")
    assert place.examine(0, time.time()) is None


def test_canaries_with_claims_run_only_for_requirements_about_the_driver(place: Place) -> None:
    object.__setattr__(place.cluster, "capabilities", _ABLE | {Capability.CHANGE_DRIVER})
    place.examine(0, time.time(), judges_cluster=True)
    assert "ResourceSlice" not in [kind for kind, _, _ in place.made.kube.applied]
    place.examine(0, time.time() + 1)
    assert "ResourceSlice" in [kind for kind, _, _ in place.made.kube.applied]


def test_a_test_without_an_answer_of_the_api_server_is_interrupted_even_if_it_answers_again(place: Place) -> None:
    test = FailedTest(0, time.time(), ["node-1"], [], place.folder, lost_api_server=True)
    found = place.surroundings.examine(test)
    assert found
    assert (found.component, found.is_repaired, found.by_driver) == ("kube-apiserver", True, False)


def test_a_testbed_that_is_gone_ends_the_run(place: Place) -> None:
    def gone() -> Any:
        raise TestbedError("testbed fake is not up")

    surroundings = Surroundings(gone, place.made.driver_file, "run-canary")
    found = surroundings.examine(FailedTest(0, 1, [], [], place.folder))
    assert found
    assert (found.component, found.is_repaired) == ("testbed", False)


def test_the_evidence_of_canaries_has_no_credentials(tmp_path: Path) -> None:
    seen = f"canary pod: Pending: url https://user:{'x' * 20}@registry.example/busybox"
    repair.keep_canaries([CanaryState("node-1", is_bound=True, is_handled=True, seen=seen)], tmp_path)
    assert "x" * 20 not in (tmp_path / "canaries.txt").read_text()


def test_without_canaries_there_is_no_evidence_that_the_cluster_works(tmp_path: Path) -> None:
    repair.keep_canaries([], tmp_path)
    assert list(tmp_path.iterdir()) == []
