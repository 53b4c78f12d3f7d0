"""The way onto nodes, on a cluster in memory whose nodes answer as a test says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ApiError, CommandFailed, TestbedError, UsageError, WaitTimeout
from testbed.kube.ownership import Owner
from testbed.models.sections import Allow
from testbed.process import Completed
from testbed.providers.base import Capability
from testbed.providers.existing.cluster import ExistingCluster, Facts
from testbed.providers.existing.node_pods import NodePods
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "aaaaaaaaaaaa")
RESTARTS = {Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}


class Nodes(FakeKube):
    """Nodes with systemd. Units are active or inactive; a kubelet that is stopped takes no commands."""

    def __init__(self) -> None:
        super().__init__()
        self.units = {"kubelet": "active", "containerd": "active"}
        self.commands: list[str] = []
        self.code = 0
        self.starts = True
        self.runtime = "containerd://2.1"
        for name in ("n1", "n2"):
            self.put("Node", name)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Any:
        found = super().get(api_version, kind, name, namespace)
        if kind == "Node":
            found["status"] = {"nodeInfo": {"containerRuntimeVersion": self.runtime}}
        if kind == "Pod":
            found["status"] = {"containerStatuses": [{"ready": self.starts, "state": {"waiting": {"reason": "Err"}}}]}
        return found

    def attempt(self, _namespace: str, _pod: str, command: Sequence[str], **_: Any) -> Completed:
        if self.units["kubelet"] != "active":
            raise ApiError("EXEC", 500, "", "dial tcp: connection refused")
        assert command[0] == "nsenter"
        asked = " ".join(command[command.index("--") + 1 :])
        self.commands.append(asked)
        if "--on-active=1 " in asked:
            self.units[asked.split()[-1]] = "inactive"
        return Completed(tuple(command), self.code, "said\n", "complained\n")

    def request(self, method: str, path: str, **how: Any) -> Any:
        assert path.endswith(":8080/proxy/cgi-bin/unit"), path
        verb, unit = how["query"]["q"].split("=")
        if verb == "start":
            self.units[unit] = "active"
        return f"{self.units[unit]}\n"


@pytest.fixture
def kube() -> Nodes:
    return Nodes()


@pytest.fixture
def on_nodes(kube: Nodes) -> NodePods:
    return NodePods(kube, OWNER, "r.example/w")  # type: ignore[arg-type]  # the fake


def test_a_program_runs_through_a_pod_that_is_ours_privileged_and_short_lived(kube: Nodes, on_nodes: NodePods) -> None:
    made: list[Any] = []
    kube.react = lambda now: made.extend(now.list("v1", "Pod"))
    done = on_nodes.run("n1", ["cat", "/etc/hostname"])
    (pod,) = (each for each in made[:1])
    assert (done.argv, done.stdout, kube.commands) == (("cat", "/etc/hostname"), "said\n", ["cat /etc/hostname"])
    assert OWNER.owns(pod)
    assert (pod["spec"]["nodeName"], pod["spec"]["hostPID"]) == ("n1", True)
    assert pod["spec"]["containers"][0]["securityContext"]["privileged"] is True
    assert pod["spec"]["activeDeadlineSeconds"] > 0
    assert kube.list("v1", "Pod") == []
    assert all(OWNER.owns(each) for each in kube.list("v1", "Namespace"))


def test_a_program_that_fails_says_so_and_its_pod_goes_all_the_same(kube: Nodes, on_nodes: NodePods) -> None:
    kube.code = 3
    assert on_nodes.run("n1", ["false"], check=False).code == 3
    with pytest.raises(CommandFailed, match="complained"):
        on_nodes.run("n1", ["false"])
    assert kube.list("v1", "Pod") == []


def test_what_nodes_allow_is_tried_out(kube: Nodes, on_nodes: NodePods) -> None:
    assert on_nodes.abilities(["n1", "n2"]) == (frozenset(RESTARTS), "")
    kube.runtime = "docker://20"
    assert on_nodes.abilities(["n1"])[0] == {Capability.RUN_ON_NODE}
    kube.code = 127
    able, why = on_nodes.abilities(["n1"])
    assert (able, "nsenter" in why) == (frozenset(), True)


def test_nodes_without_systemd_restart_nothing(kube: Nodes, on_nodes: NodePods) -> None:
    kube.units["kubelet"] = ""
    kube.attempt = lambda *_, **__: Completed(("true",), 0, "", "")  # type: ignore[method-assign]
    able, why = on_nodes.abilities(["n1"])
    assert able == {Capability.RUN_ON_NODE}
    assert "systemd says of kubelet: nothing" in why


def test_pods_that_the_cluster_refuses_or_cannot_start_close_the_way(kube: Nodes, on_nodes: NodePods) -> None:
    kube.starts = False
    able, why = on_nodes.abilities(["n1"])
    assert (able, "waiting: Err" in why or "last seen" in why) == (frozenset(), True)

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError("PATCH", 403, "Forbidden", "privileged pods are not welcome")

    kube.apply = refuse  # type: ignore[method-assign]
    able, why = on_nodes.abilities(["n1"])
    assert (able, "not welcome" in why) == (frozenset(), True)


@pytest.mark.parametrize(("part", "unit"), [("kubelet", "kubelet"), ("runtime", "containerd")])
def test_a_part_is_stopped_with_a_way_back_and_started_again(
    kube: Nodes, on_nodes: NodePods, part: str, unit: str
) -> None:
    on_nodes.stop("n1", part)
    assert kube.units[unit] == "inactive"
    back = [each for each in kube.commands if f"systemctl start {unit}" in each]
    assert "--on-active=600" in back[0]
    assert kube.commands.index(back[0]) < len(kube.commands) - 1, "the way back is there before the part stops"
    on_nodes.start("n1", part)
    assert kube.units[unit] == "active"
    assert kube.list("v1", "Pod") == []


def test_a_part_that_does_not_stop_is_an_error(kube: Nodes, on_nodes: NodePods) -> None:
    kube.attempt = lambda *_, **__: Completed(("x",), 0, "", "")  # type: ignore[method-assign]
    with pytest.raises(WaitTimeout, match="kubelet of node n1 to be inactive"):
        on_nodes.stop("n1", "kubelet")


def test_a_runtime_that_nobody_knows_is_not_touched(kube: Nodes, on_nodes: NodePods) -> None:
    kube.runtime = "docker://20"
    with pytest.raises(TestbedError, match="node n1 runs docker"):
        on_nodes.stop("n1", "runtime")
    assert kube.commands == []


@pytest.mark.parametrize("allow", Allow)
def test_without_the_ability_nothing_is_run_and_the_level_is_named(allow: Allow, tmp_path: Path) -> None:
    facts = Facts(allow, "1.37.1", frozenset({Capability.MAKE_OBJECTS}), OWNER, "i")
    cluster = ExistingCluster("mine", tmp_path, facts)
    said = "does not let us" if allow is Allow.RESTART else "--allow restart"
    for act in (cluster.stop_kubelet, cluster.start_kubelet, cluster.stop_runtime, cluster.start_runtime):
        with pytest.raises(UsageError, match=said):
            act("n1")


def test_facts_are_kept_and_found_again(tmp_path: Path) -> None:
    facts = Facts(Allow.RESTART, "1.37.1", frozenset(RESTARTS), OWNER, "i")
    assert Facts.load(tmp_path) is None
    facts.save(tmp_path)
    assert Facts.load(tmp_path) == facts
