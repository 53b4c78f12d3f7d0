"""The way onto nodes, on a cluster in memory whose nodes answer as a test says."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed import process
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
    """Nodes with systemd. Units are active or inactive. Where one is stopped no pod starts, and a stopped kubelet takes no commands."""

    def __init__(self) -> None:
        super().__init__()
        self.units = {"kubelet": "active", "containerd": "active"}
        self.commands: list[str] = []
        self.code = 0
        self.starts = self.stops = True
        self.runtime = "containerd://2.1"
        for name in ("n1", "n2"):
            self.put("Node", name)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Any:
        found = super().get(api_version, kind, name, namespace)
        if kind == "Node":
            found["status"] = {"nodeInfo": {"containerRuntimeVersion": self.runtime}}
        return found

    def apply(self, manifest: Any, **how: Any) -> Any:
        if manifest["kind"] == "Pod":
            runs = self.starts and "inactive" not in self.units.values()
            status = {"containerStatuses": [{"ready": runs, "state": {"waiting": {"reason": "Err"}}}]}
            there = self.objects.get(("Pod", manifest["metadata"]["namespace"], manifest["metadata"]["name"]), {})
            manifest = {**manifest, "status": there.get("status", status)}
        return super().apply(manifest, **how)

    def attempt(self, _namespace: str, _pod: str, command: Sequence[str], **_: Any) -> Completed:
        if self.units["kubelet"] != "active":
            raise ApiError("EXEC", 500, "", "dial tcp: connection refused")
        assert command[0] == "nsenter"
        asked = " ".join(command[command.index("--") + 1 :])
        self.commands.append(asked)
        return Completed(tuple(command), self.code, "said\n", "complained\n")

    def request(self, method: str, path: str, **how: Any) -> Any:
        pod = re.fullmatch(r"/api/v1/namespaces/(.*)/pods/(.*):8080/proxy/cgi-bin/unit", path)
        assert pod, path
        if not _serves(self.objects.get(("Pod", pod[1], pod[2]))):
            raise ApiError(f"{method} {path}", 503, "ServiceUnavailable", "no such pod, or it does not run")
        verb, unit = how["query"]["q"].split("=")
        if verb == "stop" and self.stops:
            self.units[unit] = "inactive"
        if verb == "start":
            self.units[unit] = "active"
        return "stopping\n" if verb == "stop" else f"{self.units[unit]}\n"


def _serves(pod: Any) -> bool:
    return bool(pod) and pod["status"]["containerStatuses"][0]["ready"]


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
    kube.attempt = lambda *_, **__: Completed(("true",), 0, "", "")  # type: ignore[method-assign]  # the fake's own
    able, why = on_nodes.abilities(["n1"])
    assert able == {Capability.RUN_ON_NODE}
    assert "systemd says of kubelet: nothing" in why


def test_pods_that_the_cluster_refuses_or_cannot_start_close_the_way(kube: Nodes, on_nodes: NodePods) -> None:
    kube.starts = False
    able, why = on_nodes.abilities(["n1"])
    assert (able, "waiting: Err" in why or "last seen" in why) == (frozenset(), True)

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError("PATCH", 403, "Forbidden", "privileged pods are not welcome")

    kube.apply = refuse  # type: ignore[method-assign]  # the fake's own
    able, why = on_nodes.abilities(["n1"])
    assert (able, "not welcome" in why) == (frozenset(), True)


@pytest.mark.parametrize(("part", "unit"), [("kubelet", "kubelet"), ("runtime", "containerd")])
def test_a_part_is_stopped_and_started_again(kube: Nodes, on_nodes: NodePods, part: str, unit: str) -> None:
    on_nodes.stop("n1", part)
    assert kube.units[unit] == "inactive"
    on_nodes.start("n1", part)
    assert kube.units[unit] == "active"
    assert kube.list("v1", "Pod") == []


def test_a_part_that_does_not_stop_is_an_error(kube: Nodes, on_nodes: NodePods) -> None:
    kube.stops = False
    with pytest.raises(WaitTimeout, match="kubelet of node n1 to be inactive"):
        on_nodes.stop("n1", "kubelet")


def test_one_keeper_stops_and_starts_both_parts_while_no_pod_can_start(kube: Nodes, on_nodes: NodePods) -> None:
    on_nodes.stop("n1", "kubelet")
    (keeper,) = kube.list("v1", "Pod")
    on_nodes.stop("n1", "runtime")
    assert set(kube.units.values()) == {"inactive"}
    on_nodes.start("n1", "runtime")
    assert [each["metadata"] for each in kube.list("v1", "Pod")] == [keeper["metadata"]], "the kubelet still needs it"
    on_nodes.start("n1", "kubelet")
    assert set(kube.units.values()) == {"active"}
    assert kube.list("v1", "Pod") == []


def test_a_keeper_that_has_ended_is_replaced(kube: Nodes, on_nodes: NodePods) -> None:
    on_nodes.stop("n1", "kubelet")
    kube.units["kubelet"] = "active"  # the timer, after whoever stopped it was killed
    (key,) = (key for key in kube.objects if key[0] == "Pod")
    kube.objects[key]["status"] = {"phase": "Failed", "containerStatuses": [{"ready": False, "state": {}}]}
    on_nodes.stop("n1", "runtime")
    assert kube.deleted == [f"Pod/{key[2]}"]
    assert kube.units["containerd"] == "inactive"


def test_a_keeper_that_answers_is_kept_whatever_the_kubelet_said_last(kube: Nodes, on_nodes: NodePods) -> None:
    on_nodes.stop("n1", "kubelet")
    kube.find = lambda *_: {"metadata": {}, "status": {}}  # type: ignore[method-assign]  # the fake's own
    on_nodes.stop("n1", "runtime")
    assert kube.deleted == []


def _page(kube: Nodes, folder: Path, systemd_run: str) -> Callable[[str], list[str]]:
    """The keeper's page as its pod makes it, on a node whose systemd only notes what it is told."""
    (pod,) = kube.list("v1", "Pod")
    log = folder / "log"
    (folder / "nsenter").write_text(
        f"#!/bin/sh\nwhile [ $1 != -- ]; do shift; done; shift\necho $* >> {log}\n{systemd_run}\n"
    )
    (folder / "nsenter").chmod(0o755)
    (folder / "httpd").symlink_to("/bin/true")
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    script = pod["spec"]["containers"][0]["command"][2].replace("/tmp/page", str(folder / "page"))
    process.run(["sh", "-c", script], env=environment)

    def ask(question: str) -> list[str]:
        log.write_text("")
        query = {"QUERY_STRING": f"q={question.replace('=', '%3D')}"}
        process.run([folder / "page/cgi-bin/unit"], env=environment | query, check=False)
        return log.read_text().splitlines()

    return ask


def test_a_part_has_a_way_back_before_it_stops(kube: Nodes, on_nodes: NodePods, tmp_path: Path) -> None:
    on_nodes.stop("n1", "kubelet")
    ask = _page(kube, tmp_path, "")
    back = "systemd-run --quiet --collect --on-active=600 --unit=dra-testbed-kubelet-back systemctl start kubelet"
    assert ask("stop=kubelet")[1:] == [back, "systemctl stop --no-block kubelet"]
    assert ask("start=kubelet") == ["systemctl start kubelet", "systemctl stop dra-testbed-kubelet-back.timer"]
    assert ask("stop=sshd") == []


def test_without_a_way_back_nothing_is_stopped(kube: Nodes, on_nodes: NodePods, tmp_path: Path) -> None:
    on_nodes.stop("n1", "kubelet")
    ask = _page(kube, tmp_path, "case $1 in systemd-run) exit 1; esac")
    assert [each for each in ask("stop=kubelet") if "stop --no-block" in each] == []
    kube.request = lambda *_, **__: "Failed to start transient timer unit"  # type: ignore[method-assign]  # the fake's own
    with pytest.raises(TestbedError, match="kubelet of node n1 was not stopped: Failed to start"):
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
