"""The logs of an existing cluster: only those of our own pods, and only in the given folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.kube.client import Object
from testbed.kube.ownership import Owner
from testbed.models.sections import Allow
from testbed.providers.base import Capability
from testbed.providers.existing.cluster import ExistingCluster, FoundClusterRecord
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
