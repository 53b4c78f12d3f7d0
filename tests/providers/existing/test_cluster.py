"""The logs of an existing cluster: only those of our own pods, and only in the given folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed import waiting
from testbed.errors import ApiError, CommandFailed, WaitTimeout
from testbed.kube.client import Object
from testbed.kube.ownership import Owner
from testbed.models.sections import Allow
from testbed.providers.base import Capability
from testbed.providers.existing import cluster
from testbed.providers.existing.cluster import ExistingCluster, FoundClusterRecord
from testbed.waiting import Budget
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "aaaaaaaaaaaa")
FACTS = FoundClusterRecord(Allow.WORKLOADS, "1.37.1", frozenset({Capability.MAKE_OBJECTS}), OWNER, "i")


class Unselective(FakeKube):
    """An API server that ignores selectors."""

    def list(self, api_version: str, kind: str, namespace: str | None = None, **_: str) -> list[Object]:
        return super().list(api_version, kind, namespace)


def _pod(kube: FakeKube, namespace: str, name: str) -> None:
    spec = {"initContainers": [{"name": "init"}], "containers": [{"name": "../main"}]}
    kube.put("Pod", name, namespace, spec=spec)
    kube.log_texts |= {f"{name}/init": "started\n", f"{name}/../main": "ran\n"}


@pytest.fixture
def kube() -> FakeKube:
    made = Unselective()
    made.objects["Namespace", "default", "ours"] = OWNER.mark(made.put("Namespace", "ours"))
    made.put("Namespace", "theirs")
    made.put("Node", "n1")
    return made


def _collected(kube: Any, into: Path) -> dict[str, str]:
    into.mkdir()
    ExistingCluster("mine", into, FACTS, kube).collect_logs(into)
    assert list(into.parent.iterdir()) == [into]
    return {str(path.relative_to(into)): path.read_text() for path in into.rglob("*.log") if path.name != "nodes.log"}


def test_the_logs_of_all_our_containers_are_written_inside_the_folder(kube: FakeKube, tmp_path: Path) -> None:
    _pod(kube, "ours", "pod")
    _pod(kube, "theirs", "secret")
    _pod(kube, "ours", "../../up")
    assert _collected(kube, tmp_path / "logs") == {
        "ours/pod.init.log": "started\n",
        "ours/pod.unsafe-___main.log": "ran\n",
        "ours/unsafe-______up.init.log": "started\n",
        "ours/unsafe-______up.unsafe-___main.log": "ran\n",
    }


def _node(kube: FakeKube, boot: str, ready: str) -> None:
    status = {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready", "status": ready}]}
    kube.put("Node", "n1", status=status)


def _reboots_with(command: str, kube: Any) -> ExistingCluster:
    return ExistingCluster("mine", Path(), replace(FACTS, reboot_command=command), kube)


def test_a_reboot_calls_the_command_with_the_node_and_waits_for_the_new_boot(tmp_path: Path) -> None:
    program, seen = tmp_path / "reboot it", tmp_path / "seen"
    program.write_text(f'#!/bin/sh\necho "$@" > {seen}\n')
    program.chmod(0o755)
    states = iter([("1", "True"), ("1", "True"), ("2", "False"), ("2", "True")])

    class Rebooting(FakeKube):
        def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
            _node(self, *next(states))
            return super().get(api_version, kind, name, namespace)

    _reboots_with(f"'{program}' --node", Rebooting()).reboot("n1")
    assert seen.read_text() == "--node n1\n"
    assert next(states, None) is None


@pytest.mark.parametrize("status", [0, 404, 503])
def test_a_reboot_may_make_the_api_server_or_the_node_disappear(status: int) -> None:
    answers: Any = iter([("1", "True"), ApiError("GET Node/n1", status, "", "lost"), ("2", "True")])

    class Rebooting(FakeKube):
        def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
            answer = next(answers)
            if isinstance(answer, ApiError):
                raise answer
            _node(self, *answer)
            return super().get(api_version, kind, name, namespace)

    _reboots_with("true", Rebooting()).reboot("n1")
    assert next(answers, None) is None


def test_a_restart_that_is_no_reboot_is_explained(kube: FakeKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_REBOOTED", Budget("node rebooted", 30, "a test"))
    monkeypatch.setattr(waiting, "_patience", 0.001)
    _node(kube, "1", "True")
    with pytest.raises(WaitTimeout, match="still reports the boot ID 1") as not_seen:
        _reboots_with("true", kube).reboot("n1")
    assert "keeps its host's boot ID" in not_seen.value.hint


def test_a_reboot_command_that_fails_is_reported(kube: FakeKube) -> None:
    _node(kube, "1", "True")
    with pytest.raises(CommandFailed, match="false n1"):
        _reboots_with("false", kube).reboot("n1")
