from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from testbed.drivers import live_control
from testbed.errors import TestbedError, UsageError
from testbed.process import Completed
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

DEVICES = {"node-1": ["gpu-0", "gpu-1"], "node-2": ["gpu-0"]}


class Kube(FakeKube):
    """A cluster whose drivers answer `state`, and anything else with what a test sets."""

    answer = Completed((), 0, '{"changed": true}', "")

    def exec_unchecked(self, namespace: str, pod: str, command: Sequence[str], **how: Any) -> Completed:
        self.exec_calls.append((pod, how["container"], tuple(command)))
        if command[-1] == "state":
            return Completed((), 0, json.dumps({"devices": DEVICES[pod.removeprefix("driver-")]}), "")
        return self.answer


@pytest.fixture
def kube() -> Kube:
    made = Kube()
    for node in DEVICES:
        put(made, f"driver-{node}", node)
    return made


def put(
    kube: Kube, name: str, node: str, phase: str = "Running", at: str = "2026-01-01T00:00:00Z", **more: str
) -> None:
    labels = {"app": "fake-gpu-driver"}
    metadata = {"labels": labels, "creationTimestamp": at, **more}
    kube.put("Pod", name, "dra-testbed-driver", metadata=metadata, spec={"nodeName": node}, status={"phase": phase})


FILE = cluster.make().driver_file


def test_the_control_command_runs_in_the_drivers_container_on_the_node(kube: Kube) -> None:
    assert live_control.run_control(kube, FILE, "node-2", ["unplug", "gpu-0"]) == {"changed": True}  # type: ignore[arg-type]  # the fake
    command = ("python3", "-m", "fake_driver.control", "unplug", "gpu-0")
    assert kube.exec_calls == [("driver-node-2", "driver", command)]


def test_during_an_update_the_newer_pod_is_used(kube: Kube) -> None:
    put(kube, "driver-new", "node-1", at="2026-01-02T00:00:00Z")
    put(kube, "driver-newest", "node-1", phase="Pending", at="2026-01-03T00:00:00Z")
    live_control.run_control(kube, FILE, "node-1", ["plug", "gpu-0"])  # type: ignore[arg-type]  # the fake
    assert kube.exec_calls[0][0] == "driver-new"


@pytest.mark.parametrize(
    ("node", "device", "found"),
    [
        (None, None, ["node-1", "node-2"]),
        ("node-2", None, ["node-2"]),
        ("node-2", "gpu-1", ["node-2"]),  # the driver itself refuses the device, and names those that it has
        (None, "gpu-1", ["node-1"]),
        ("all", "gpu-0", ["node-1", "node-2"]),
    ],
)
def test_a_change_applies_to_the_named_nodes_or_those_with_the_device(
    kube: Kube, node: str | None, device: str | None, found: list[str]
) -> None:
    assert live_control.nodes_for(kube, FILE, node, device) == found  # type: ignore[arg-type]  # the fake


@pytest.mark.parametrize(
    ("node", "device", "text"),
    [
        ("node-3", None, "did you mean node-"),
        (None, "gpu-2", "did you mean gpu-"),
        (None, "gpu-0", "device gpu-0 exists on node-1 and node-2"),
    ],
)
def test_an_unknown_or_ambiguous_target_is_a_usage_error(
    kube: Kube, node: str | None, device: str | None, text: str
) -> None:
    with pytest.raises(UsageError) as refused:
        live_control.nodes_for(kube, FILE, node, device)  # type: ignore[arg-type]  # the fake
    assert text in f"{refused.value}"


def test_a_driver_without_a_control_command_cannot_be_changed(kube: Kube) -> None:
    without = FILE.model_copy(update={"spec": FILE.spec.model_copy(update={"control": None})})
    with pytest.raises(UsageError, match=r"its driver file has no spec\.control"):
        live_control.nodes_for(kube, without)  # type: ignore[arg-type]  # the fake
    assert ("live-control" in FILE.features, "live-control" in without.features) == (True, False)


def test_a_refusal_is_reported_without_the_usage_message(kube: Kube) -> None:
    kube.answer = Completed((), 2, "", "usage: …\nnothing was changed: no device gpu-9\n")
    with pytest.raises(UsageError, match=r"^node-1: nothing was changed: no device gpu-9$"):
        live_control.run_control(kube, FILE, "node-1", ["unplug", "gpu-9"])  # type: ignore[arg-type]  # the fake


@pytest.mark.parametrize(
    "answer", [Completed((), 3, "", "no driver answers"), Completed((), 0, "[]", ""), Completed((), 0, "no driver", "")]
)
def test_a_failed_control_command_is_not_a_usage_error(kube: Kube, answer: Completed) -> None:
    kube.answer = answer
    with pytest.raises(TestbedError, match="the control command failed in pod") as failed:
        live_control.run_control(kube, FILE, "node-1", ["unplug", "gpu-0"])  # type: ignore[arg-type]  # the fake
    assert failed.value.exit_code == 3


def test_a_node_without_the_driver_is_refused(kube: Kube) -> None:
    with pytest.raises(TestbedError, match="no pod of driver fake-gpu runs on node-7"):
        live_control.run_control(kube, FILE, "node-7", ["state"])  # type: ignore[arg-type]  # the fake
