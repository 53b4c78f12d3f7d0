"""Access to nodes through pods, on a cluster in memory."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import urllib3

from testbed import process
from testbed.errors import ApiError, CommandFailed, TestbedError, UsageError, WaitTimeout
from testbed.kube.ownership import Owner
from testbed.models.sections import Allow
from testbed.process import Completed
from testbed.providers.base import Capability
from testbed.providers.existing.cluster import ExistingCluster, FoundClusterRecord
from testbed.providers.existing.node_pods import NodePods
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "aaaaaaaaaaaa")
KEY = "only-this-testbed-has-it"
RESTARTS = {Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME}


class Nodes(FakeKube):
    """A cluster whose nodes have systemd. While a unit is stopped no pod starts, and without a kubelet no command runs in a pod."""

    def __init__(self) -> None:
        super().__init__()
        self.units = {"kubelet": "active", "containerd": "active"}
        self.commands: list[str] = []
        self.code = 0
        self.starts = self.stops = True
        self.runtime = "containerd://2.1"
        self.nodes_without_systemd: set[str] = set()
        self.nodes_of_another_architecture: set[str] = set()
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
            status: Any = {"containerStatuses": [{"ready": runs, "state": {"waiting": {"reason": "Err"}}}]}
            if manifest["spec"]["nodeName"] in self.nodes_of_another_architecture:
                ended = {"terminated": {"reason": "StartError", "message": "exec format error"}}
                status = {"phase": "Failed", "containerStatuses": [{"ready": False, "state": ended}]}
            there = self.objects.get(("Pod", manifest["metadata"]["namespace"], manifest["metadata"]["name"]), {})
            manifest = {**manifest, "status": there.get("status", status)}
        return super().apply(manifest, **how)

    def exec_unchecked(self, namespace: str, pod: str, command: Sequence[str], **_: Any) -> Completed:
        if self.units["kubelet"] != "active":
            raise ApiError("EXEC", 500, "", "dial tcp: connection refused")
        assert command[0] == "nsenter"
        asked = " ".join(command[command.index("--") + 1 :])
        self.commands.append(asked)
        return Completed(tuple(command), self.code, "said\n", "complained\n")

    def request(self, method: str, path: str, **how: Any) -> Any:
        pod = re.fullmatch(r"/api/v1/namespaces/(.*)/pods/(.*):8080/proxy/cgi-bin/unit", path)
        assert pod, path
        found = self.objects.get(("Pod", pod[1], pod[2]))
        if found is None or not _serves(found):
            raise ApiError(f"{method} {path}", 503, "ServiceUnavailable", "no such pod, or it does not run")
        assert how["headers"] == [("Cookie", f"dra-testbed={KEY}")]
        assert KEY not in str(self.objects) + path + str(how["query"])
        verb, unit = how["query"]["q"].split("=")
        if found["spec"]["nodeName"] in self.nodes_without_systemd:
            return ""
        if verb == "stop" and self.stops:
            self.units[unit] = "inactive"
        if verb == "start":
            self.units[unit] = "active"
        return "stopping\n" if verb == "stop" else f"{self.units[unit]}\n"


def _serves(pod: Any) -> bool:
    page = bool(pod) and "httpd" in str(pod["spec"]["containers"][0]["command"])
    return page and pod["status"]["containerStatuses"][0]["ready"]


@pytest.fixture
def kube() -> Nodes:
    return Nodes()


@pytest.fixture
def on_nodes(kube: Nodes) -> NodePods:
    return NodePods(kube, OWNER, "r.example/w", KEY)  # type: ignore[arg-type]  # the fake


def test_a_program_runs_through_a_short_lived_privileged_pod_of_ours(kube: Nodes, on_nodes: NodePods) -> None:
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


def test_the_pod_of_a_failed_program_is_removed(kube: Nodes, on_nodes: NodePods) -> None:
    kube.code = 3
    assert on_nodes.run("n1", ["false"], check=False).code == 3
    with pytest.raises(CommandFailed, match="complained"):
        on_nodes.run("n1", ["false"])
    assert kube.list("v1", "Pod") == []


def test_a_pod_for_a_program_serves_no_page(kube: Nodes, on_nodes: NodePods) -> None:
    made: list[Any] = []
    kube.react = lambda now: made.extend(now.list("v1", "Pod"))
    on_nodes.run("n1", ["true"])
    (container,) = made[0]["spec"]["containers"]
    assert container["command"][0] == "sleep"
    assert "readinessProbe" not in container


def test_the_capabilities_of_a_node_are_tested_and_the_pod_is_removed(kube: Nodes, on_nodes: NodePods) -> None:
    assert on_nodes.capabilities("n1") == (frozenset(RESTARTS), "")
    kube.runtime = "docker://20"
    assert on_nodes.capabilities("n1")[0] == {Capability.RUN_ON_NODE}
    kube.code = 127
    able, why = on_nodes.capabilities("n1")
    assert (able, "nsenter" in why) == (frozenset(), True)
    assert kube.list("v1", "Pod") == []


def test_on_a_node_without_systemd_nothing_can_be_restarted(kube: Nodes, on_nodes: NodePods) -> None:
    kube.nodes_without_systemd = {"n1"}
    able, why = on_nodes.capabilities("n1")
    assert able == {Capability.RUN_ON_NODE}
    assert "systemd reports the state of kubelet as unknown" in why


def test_without_pods_on_it_a_node_has_no_capabilities(kube: Nodes, on_nodes: NodePods) -> None:
    kube.starts = False
    able, why = on_nodes.capabilities("n1")
    assert (able, "waiting: Err" in why or "last seen" in why) == (frozenset(), True)

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError("PATCH", 403, "Forbidden", "privileged pods are not welcome")

    kube.apply = refuse  # type: ignore[method-assign]  # the fake's own
    able, why = on_nodes.capabilities("n1")
    assert (able, "not welcome" in why) == (frozenset(), True)


def test_a_pod_that_has_ended_is_not_waited_for(kube: Nodes, on_nodes: NodePods) -> None:
    kube.nodes_of_another_architecture = {"n1"}
    able, why = on_nodes.capabilities("n1")
    assert (able, "exec format error" in why, "timed out" in why) == (frozenset(), True, False)


@pytest.mark.parametrize(("part", "unit"), [("kubelet", "kubelet"), ("runtime", "containerd")])
def test_a_component_is_stopped_and_started_again(kube: Nodes, on_nodes: NodePods, part: str, unit: str) -> None:
    on_nodes.stop("n1", part)
    assert kube.units[unit] == "inactive"
    on_nodes.start("n1", part)
    assert kube.units[unit] == "active"
    assert kube.list("v1", "Pod") == []


def test_a_component_that_does_not_stop_is_an_error(kube: Nodes, on_nodes: NodePods) -> None:
    kube.stops = False
    with pytest.raises(WaitTimeout, match="kubelet of node n1 to be inactive"):
        on_nodes.stop("n1", "kubelet")


def test_one_keeper_stops_and_starts_both_components_while_no_pod_can_start(kube: Nodes, on_nodes: NodePods) -> None:
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
    kube.units["kubelet"] = "active"  # started by the timer, because the process that stopped it was killed
    (key,) = (key for key in kube.objects if key[0] == "Pod")
    kube.objects[key]["status"] = {"phase": "Failed", "containerStatuses": [{"ready": False, "state": {}}]}
    on_nodes.stop("n1", "runtime")
    assert kube.deleted == [f"Pod/{key[2]}"]
    assert kube.units["containerd"] == "inactive"


def test_a_keeper_that_answers_is_kept_although_its_status_is_stale(kube: Nodes, on_nodes: NodePods) -> None:
    on_nodes.stop("n1", "kubelet")
    kube.find = lambda *_: {"metadata": {}, "status": {}}  # type: ignore[method-assign]  # the fake's own
    on_nodes.stop("n1", "runtime")
    assert kube.deleted == []


def _page(kube: Nodes, folder: Path, systemd_run: str) -> Callable[..., list[str]]:
    """Run the keeper's page as its pod does, on a node whose systemd only records commands."""
    script, environment = _set_up(kube, folder, systemd_run)
    (folder / "httpd").symlink_to("/bin/true")
    process.run(["sh", "-c", script], env=environment)
    log = folder / "log"

    def ask(question: str, cookie: str = f"dra-testbed={KEY}") -> list[str]:
        log.write_text("")
        query = {"QUERY_STRING": f"q={question.replace('=', '%3D')}", "HTTP_COOKIE": cookie}
        process.run([folder / "page/cgi-bin/unit"], env=environment | query, check=False)
        return log.read_text().splitlines()

    return ask


def _set_up(kube: Nodes, folder: Path, systemd_run: str) -> tuple[str, dict[str, str]]:
    """Return the keeper's script for a temporary folder, and an environment with a fake nsenter."""
    (pod,) = kube.list("v1", "Pod")
    (folder / "nsenter").write_text(
        f"#!/bin/sh\nwhile [ $1 != -- ]; do shift; done; shift\necho $* >> {folder}/log\n{systemd_run}\n"
    )
    (folder / "nsenter").chmod(0o755)
    script = pod["spec"]["containers"][0]["command"][2].replace("/tmp/page", str(folder / "page"))
    return script, {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    "key", ["", "another", f"{KEY} ", f"$(echo {KEY})", '" = "" ] || [ "', "*", f"{KEY}; dra-testbed=x"]
)
def test_a_request_without_the_testbeds_key_has_no_effect(
    kube: Nodes, on_nodes: NodePods, tmp_path: Path, key: str
) -> None:
    on_nodes.stop("n1", "kubelet")
    ask = _page(kube, tmp_path, "")
    cookie = f"dra-testbed={key}" if key else ""
    assert ask("stop=kubelet", cookie) == ask("start=kubelet", cookie) == ask("state=kubelet", cookie) == []
    for more in ("", "theirs=1; "):
        assert ask("state=kubelet", f"{more}dra-testbed={KEY}") == ["systemctl is-active kubelet"]
    assert ask("state=kubelet", f"dra-testbed={KEY}; theirs=1") == ["systemctl is-active kubelet"]


@pytest.mark.skipif(not shutil.which("busybox"), reason="there is no busybox on this host")
def test_the_key_reaches_the_page_through_busyboxs_server(kube: Nodes, on_nodes: NodePods, tmp_path: Path) -> None:
    on_nodes.stop("n1", "kubelet")
    script, environment = _set_up(kube, tmp_path, "echo active")
    for name in ("httpd", "sh", "sha256sum", "cat", "mkdir", "chmod"):
        (tmp_path / name).symlink_to(str(shutil.which("busybox")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = process.start(
        [tmp_path / "sh", "-c", script.replace("8080", f"127.0.0.1:{port}")], log=tmp_path / "out", env=environment
    )
    try:
        url = f"http://127.0.0.1:{port}/cgi-bin/unit?q=state%3Dkubelet"
        with urllib3.PoolManager(retries=urllib3.Retry(20, backoff_factor=0.01)) as pool:
            assert pool.request("GET", url).data == b""
            assert pool.request("GET", url, headers={"Cookie": f"dra-testbed={KEY}"}).data == b"active\n"
    finally:
        process.kill(server)


def test_the_restart_timer_exists_before_a_component_is_stopped(
    kube: Nodes, on_nodes: NodePods, tmp_path: Path
) -> None:
    on_nodes.stop("n1", "kubelet")
    ask = _page(kube, tmp_path, "")
    back = "systemd-run --quiet --collect --on-active=600 --unit=dra-testbed-kubelet-back systemctl start kubelet"
    assert ask("stop=kubelet")[1:] == [back, "systemctl stop --no-block kubelet"]
    assert ask("start=kubelet") == ["systemctl start kubelet", "systemctl stop dra-testbed-kubelet-back.timer"]
    assert ask("stop=sshd") == []


def test_without_the_restart_timer_nothing_is_stopped(kube: Nodes, on_nodes: NodePods, tmp_path: Path) -> None:
    on_nodes.stop("n1", "kubelet")
    ask = _page(kube, tmp_path, "case $1 in systemd-run) exit 1; esac")
    assert [each for each in ask("stop=kubelet") if "stop --no-block" in each] == []
    kube.request = lambda *_, **__: "Failed to start transient timer unit"  # type: ignore[method-assign]  # the fake's own
    with pytest.raises(TestbedError, match="kubelet of node n1 was not stopped: Failed to start"):
        on_nodes.stop("n1", "kubelet")


def test_an_unknown_container_runtime_is_not_stopped(kube: Nodes, on_nodes: NodePods) -> None:
    kube.runtime = "docker://20"
    with pytest.raises(TestbedError, match="node n1 runs docker"):
        on_nodes.stop("n1", "runtime")
    assert kube.commands == []


@pytest.mark.parametrize("allow", Allow)
def test_without_the_capability_nothing_runs_and_the_error_names_the_level(allow: Allow, tmp_path: Path) -> None:
    record = FoundClusterRecord(allow, "1.37.1", frozenset({Capability.MAKE_OBJECTS}), OWNER, "i")
    cluster = ExistingCluster("mine", tmp_path, record)
    said = "the cluster does not permit it" if allow is Allow.RESTART else "--allow restart"
    for act in (cluster.stop_kubelet, cluster.start_kubelet, cluster.stop_runtime, cluster.start_runtime):
        with pytest.raises(UsageError, match=said):
            act("n1")


def _record() -> FoundClusterRecord:
    return FoundClusterRecord(Allow.RESTART, "1.37.1", frozenset(RESTARTS), OWNER, "i")


def test_a_record_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    record = _record()
    assert FoundClusterRecord.load(tmp_path) is None
    record.save(tmp_path)
    assert FoundClusterRecord.load(tmp_path) == record


def test_each_testbed_has_its_own_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    record, other = _record(), _record()
    (tmp_path / ".cluster.json").touch(mode=0o644)
    record.save(tmp_path)
    assert record.key != other.key
    assert len(record.key) > 40
    assert (tmp_path / "cluster.json").stat().st_mode & 0o777 == 0o600
    made = ExistingCluster("mine", tmp_path, record, FakeKube()).on_nodes(Capability.RUN_ON_NODE)  # type: ignore[arg-type]  # the fake
    assert made.key == record.key
    assert record.key not in repr(made) + repr(record)


def test_a_testbed_of_an_older_version_gets_a_key(tmp_path: Path) -> None:
    _record().save(tmp_path)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "key"}))
    found = FoundClusterRecord.load(tmp_path)
    assert found
    assert found.key
