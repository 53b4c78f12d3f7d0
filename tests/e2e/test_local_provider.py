"""The local provider keeps its promises, seen as a user of the cluster sees them."""

from __future__ import annotations

import re
import socket
import stat
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.bringup import Testbed
from testbed.providers.base import (
    Capability,
    Cluster,
    LoadsImages,
    Node,
    RestartsApiServer,
    RestartsParts,
    RunsProcesses,
)
from testbed.waiting import Budget, NotYet, eventually

READY = Budget("node ready", 60, "a kubelet reports every 10 s at the latest")


def node_ready(testbed: Testbed, name: str) -> None:
    """Wait until the API says that the node is Ready."""

    def check() -> None:
        conditions = testbed.kube.get("v1", "Node", name)["status"]["conditions"]
        ready = next(c for c in conditions if c["type"] == "Ready")
        if ready["status"] != "True":
            raise NotYet(str(ready))

    eventually(check, f"{name} Ready", READY)


def answer(kubectl: Any, pod: str) -> str:
    """What a command in the pod says; a kubelet that just started may not know the pod yet."""
    said = kubectl("exec", pod, "--", "echo", "here", check=False)
    if not said.ok:
        raise NotYet(said.stderr)
    return str(said.stdout)


def test_the_cluster_fulfils_its_protocols(testbed: Testbed) -> None:
    protocols = {
        Capability.LOAD_IMAGE: LoadsImages,
        Capability.RESTART_KUBELET: RestartsParts,
        Capability.RESTART_RUNTIME: RestartsParts,
        Capability.REBOOT_NODE: RestartsParts,
        Capability.RESTART_API_SERVER: RestartsApiServer,
        Capability.PROCESS_ON_NODE: RunsProcesses,
        Capability.RUN_ON_NODE: Cluster,
    }

    assert isinstance(testbed.cluster, Cluster)
    assert all(isinstance(node, Node) for node in testbed.cluster.nodes())
    assert all(isinstance(testbed.cluster, protocols[ability]) for ability in testbed.cluster.capabilities)


def test_the_kubeconfig_is_its_owners_alone(testbed: Testbed) -> None:
    assert stat.S_IMODE((testbed.folder / "kubeconfig").stat().st_mode) == 0o600


def test_two_nodes_are_ready(testbed: Testbed) -> None:
    assert [node["metadata"]["name"] for node in testbed.kube.list("v1", "Node")] == ["node-1", "node-2"]


def test_pods_reach_pods_on_the_other_node(kubectl: Any) -> None:
    address = kubectl.run_pod("server", "httpd -p 8080 -h /etc; sleep 3600", "node-2")
    kubectl.run_pod("client", "sleep 3600", "node-1")

    assert kubectl("exec", "client", "--", "wget", "-qO-", f"http://{address}:8080/hostname").stdout.strip() == "server"


def test_logs_and_exec_work(kubectl: Any) -> None:
    kubectl.run_pod("talker", "echo hello; sleep 3600")

    assert kubectl("logs", "talker").stdout == "hello\n"
    assert kubectl("exec", "talker", "--", "hostname").stdout == "talker\n"


def test_port_forward_works(kubectl: Any, tmp_path: Path) -> None:
    kubectl.run_pod("page", "httpd -p 8080 -h /etc; sleep 3600")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [kubectl.program, f"--kubeconfig={kubectl.kubeconfig}", "port-forward", "pod/page", f"{port}:8080"]
    forwarding = process.start(argv, log=tmp_path / "log")

    def fetch() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=2) as page:
                return str(page.read().decode())
        except OSError as nothing:
            raise NotYet(f"{nothing}; {(tmp_path / 'log').read_text()}") from nothing

    try:
        assert eventually(fetch, "an answer through the forwarded port", READY) == "page\n"
    finally:
        process.kill(forwarding)


def test_a_pod_reaches_the_api_server_by_the_service_address(kubectl: Any) -> None:
    kubectl.run_pod("caller", "sleep 3600")
    knock = "nc -w 2 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open"

    assert kubectl("exec", "caller", "--", "sh", "-c", knock).stdout == "open\n"


def test_the_api_server_accepts_a_pods_token_as_its_service_account(testbed: Testbed, kubectl: Any) -> None:
    kubectl.run_pod("account", "sleep 3600")
    token = kubectl("exec", "account", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token").stdout

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": token}}
    status = testbed.kube.create(review)["status"]

    assert status["user"]["username"] == "system:serviceaccount:default:default"


def test_a_kubelet_may_not_touch_another_node(testbed: Testbed, kubectl: Any) -> None:
    kubeconfig = testbed.folder / "cluster/pki/kubelet-node-1.kubeconfig"
    said = process.run(
        [kubectl.program, f"--kubeconfig={kubeconfig}", "label", "node", "node-2", "stolen=true"], check=False
    )

    assert not said.ok
    assert "forbidden" in said.stderr.lower()


def test_nothing_listens_on_other_addresses_of_the_host(testbed: Testbed) -> None:
    """On this host itself only the nodes' proxy listens, on the testbed's own link; all else does in namespaces of its own."""
    facts = testbed.cluster.facts  # type: ignore[attr-defined]
    ours = {str(part.process.pid) for part in testbed.cluster.components() if part.process}
    listening = process.run(["ss", "-Hltnp"]).stdout.splitlines()
    addresses = [line.split()[3] for line in listening if ours & set(re.findall(r"pid=(\d+)", line))]

    assert addresses == [f"{facts.plan.host}:{facts.egress_port}"]


def test_what_a_node_writes_stays_on_the_node(testbed: Testbed) -> None:
    one, two = testbed.cluster.nodes()
    one.run(
        "sh",
        "-c",
        "mkdir -p /opt/vendor /etc/cdi /usr/local/etc/vendor && echo x | tee /opt/vendor/f /etc/cdi/f /usr/local/etc/vendor/f",
    )

    assert not two.run("ls", "/opt/vendor", check=False).ok
    assert not Path("/opt/vendor").exists()
    assert not Path("/usr/local/etc/vendor").exists()


def test_the_hosts_devices_settings_and_cdi_files_are_not_the_nodes(testbed: Testbed) -> None:
    one, two = testbed.cluster.nodes()
    one.run("sh", "-c", "mknod /dev/vendor0 c 1 3 && touch /etc/cdi/gpu.json && test -c /dev/null && test -c /dev/ptmx")

    assert not two.run("ls", "/dev/vendor0", check=False).ok
    assert not Path("/dev/vendor0").exists()
    assert one.run("cat", "/proc/sys/kernel/panic_on_oops").stdout == "1\n"


def test_a_process_runs_on_a_node_without_an_image(testbed: Testbed, tmp_path: Path) -> None:
    cluster: Any = testbed.cluster
    started = cluster.start_process(
        "node-1", ["sh", "-c", "hostname; echo $WORD; sleep 600"], log=tmp_path / "log", env={"WORD": "hi"}
    )

    def said() -> str:
        text = (tmp_path / "log").read_text()
        if text.count("\n") < 2:
            raise NotYet(text)
        return text

    assert eventually(said, "two lines", READY) == "node-1\nhi\n"
    process.kill(started)


def test_pods_survive_a_restart_of_kubelet_and_runtime(testbed: Testbed, kubectl: Any) -> None:
    cluster: Any = testbed.cluster
    kubectl.run_pod("survivor", "sleep 3600", "node-1")
    cluster.stop_kubelet("node-1")
    cluster.stop_runtime("node-1")
    cluster.start_runtime("node-1")
    cluster.start_kubelet("node-1")
    node_ready(testbed, "node-1")

    status = testbed.kube.get("v1", "Pod", "survivor", "default")["status"]
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)
    assert eventually(lambda: answer(kubectl, "survivor"), "the kubelet to know its pods again", READY) == "here\n"


def test_a_reboot_loses_run_and_keeps_var_lib(testbed: Testbed) -> None:
    cluster: Any = testbed.cluster
    cluster.node("node-2").run("sh", "-c", "mkdir -p /run/cdi; touch /run/cdi/lost /var/run/gone /var/lib/kubelet/kept")
    cluster.reboot("node-2")
    node_ready(testbed, "node-2")

    rebooted = cluster.node("node-2")
    assert not rebooted.run("ls", "/run/cdi/lost", check=False).ok
    assert rebooted.run("ls", "/var/lib/kubelet/kept").ok


def test_the_api_server_comes_back_with_its_objects(testbed: Testbed, kubectl: Any) -> None:
    cluster: Any = testbed.cluster
    kubectl("create", "configmap", "kept", "--from-literal=a=b")
    cluster.restart_api_server()

    assert testbed.kube.get("v1", "ConfigMap", "kept", "default")["data"] == {"a": "b"}


@pytest.mark.parametrize("gate", ["DRAConsumableCapacity"])
def test_a_gate_that_is_on_by_default_is_seen_by_the_api_server(testbed: Testbed, gate: str) -> None:
    metrics = str(testbed.kube.request("GET", "/metrics"))

    assert re.search(rf'kubernetes_feature_enabled{{name="{gate}",[^}}]*}} 1', metrics)
