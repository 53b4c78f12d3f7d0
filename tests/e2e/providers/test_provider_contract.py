"""The contract that every provider keeps, capability by capability, written against the protocols alone.

`tox -e cluster` tests `local`, and `existing` on a cluster of it; `tox -e kind-cluster` tests `kind`, and `existing` on a cluster of it.
A cluster lists its capabilities. CAPABILITIES has the expected lists, so that no test is skipped because a provider lost a capability.
"""

from __future__ import annotations

import contextlib
import json
import socket
import stat
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import images, process
from testbed.bringup import Testbed, bring_up, tear_down
from testbed.images import oci, tarball
from testbed.kube import features
from testbed.models.config import effective
from testbed.progress import Silent
from testbed.providers.base import (
    Capability,
    Cluster,
    LoadsImages,
    Node,
    ReachesSockets,
    RebootsNodes,
    ResetsNodes,
    RestartsApiServer,
    RestartsControlPlane,
    RestartsNodeComponents,
    RunsProcesses,
)
from testbed.waiting import Budget, NotYet, eventually
from tests.e2e.conftest import WORKLOAD, Kubectl

READY = Budget("node ready", 120, "a kubelet reports every 10 s at the latest; a kind node boots systemd first")
EVERYTHING = frozenset(Capability)
ON_DRIVER = frozenset({Capability.MAKE_OBJECTS, Capability.CHANGE_DRIVER, Capability.ACT_AS_DRIVER})
# The providers that make the clusters for `existing`. Nodes of `local` have no systemd, so a pod cannot restart their components.
MAKERS = {"existing": "local", "existing-on-kind": "kind"}
CAPABILITIES = {
    "local": EVERYTHING,
    "kind": EVERYTHING - {Capability.PROCESS_ON_NODE},
    "existing": ON_DRIVER | {Capability.RUN_ON_NODE},
    "existing-on-kind": ON_DRIVER | {Capability.RUN_ON_NODE, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME},
}
PROTOCOLS: dict[Capability, type] = {
    Capability.LOAD_IMAGE: LoadsImages,
    Capability.RESTART_KUBELET: RestartsNodeComponents,
    Capability.RESTART_RUNTIME: RestartsNodeComponents,
    Capability.REBOOT_NODE: RebootsNodes,
    Capability.RESET_NODE: ResetsNodes,
    Capability.RESTART_API_SERVER: RestartsApiServer,
    Capability.RESTART_CONTROL_PLANE: RestartsControlPlane,
    Capability.PROCESS_ON_NODE: RunsProcesses,
    Capability.DRIVER_SOCKET: ReachesSockets,
    Capability.RUN_ON_NODE: Cluster,
    Capability.MAKE_OBJECTS: Cluster,
    # These are permissions of the kubeconfig, and need no method.
    Capability.KUBELET_METRICS: Cluster,
    Capability.ACT_AS_DRIVER: Cluster,
    Capability.CHANGE_DRIVER: Cluster,
}


@pytest.fixture(
    scope="module",
    params=[
        "local",
        pytest.param("kind", marks=pytest.mark.kind),
        "existing",
        pytest.param("existing-on-kind", marks=pytest.mark.kind),
    ],
)
def testbed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """Yield a testbed of each provider in turn; `existing` uses a cluster of another provider."""
    flags: dict[str, Any] = {"name": f"contract-{request.param}", "driver": "none", "provider": request.param}
    with contextlib.ExitStack() as at_the_end:
        if maker := MAKERS.get(request.param):
            theirs = at_the_end.enter_context(_up({"name": f"theirs-{maker}", "driver": "none", "provider": maker}))
            kubeconfig = str(theirs.folder / "kubeconfig")
            flags |= {"provider": "existing", "kubeconfig": kubeconfig, "allow": "restart"}
        yield at_the_end.enter_context(_up(flags))


@contextlib.contextmanager
def _up(flags: dict[str, Any]) -> Iterator[Testbed]:
    tear_down(flags["name"], Silent())
    yield bring_up(effective(None, flags), Silent(), ephemeral=True)
    tear_down(flags["name"], Silent())


@pytest.fixture(scope="module")
def kubectl(testbed: Testbed) -> Kubectl:
    """Return kubectl for that testbed."""
    return Kubectl(testbed)


@pytest.fixture(scope="module")
def workers(testbed: Testbed) -> list[str]:
    """Return the nodes that take pods."""
    tainted = {node["metadata"]["name"] for node in testbed.kube.list("v1", "Node") if node["spec"].get("taints")}
    return [node.name for node in testbed.cluster.nodes() if node.name not in tainted]


def able(testbed: Testbed, *capabilities: Capability) -> Any:
    """Return the cluster, or skip the test if it lacks a capability."""
    lacking = [capability for capability in capabilities if capability not in testbed.cluster.capabilities]
    if lacking:
        pytest.skip(f"{testbed.config.provider} does not list {', '.join(lacking)}")
    return testbed.cluster


def node_ready(testbed: Testbed, name: str) -> None:
    """Wait until the API says that the node is Ready."""

    def check() -> None:
        conditions = testbed.kube.get("v1", "Node", name)["status"]["conditions"]
        ready = next(c for c in conditions if c["type"] == "Ready")
        if ready["status"] != "True":
            raise NotYet(str(ready))

    eventually(check, f"{name} Ready", READY)


def answer(kubectl: Kubectl, pod: str) -> str:
    """Return the output of a command in the pod. Raise NotYet if it fails: a kubelet that just started may not know the pod."""
    result = kubectl("exec", pod, "--", "echo", "here", check=False)
    if not result.ok:
        raise NotYet(result.stderr)
    return str(result.stdout)


def test_the_cluster_lists_its_capabilities_and_implements_their_protocols(testbed: Testbed) -> None:
    cluster = testbed.cluster

    assert isinstance(cluster, Cluster)
    assert all(isinstance(node, Node) for node in cluster.nodes())
    assert cluster.capabilities == CAPABILITIES[testbed.name.removeprefix("contract-")]
    assert all(isinstance(cluster, PROTOCOLS[capability]) for capability in cluster.capabilities)


def test_the_metrics_of_kubelets_can_be_read(testbed: Testbed, workers: list[str]) -> None:
    able(testbed, Capability.KUBELET_METRICS)

    assert "kubelet_node_name" in testbed.kube.request("GET", f"/api/v1/nodes/{workers[0]}/proxy/metrics")


def test_a_service_account_can_be_impersonated(testbed: Testbed) -> None:
    able(testbed, Capability.ACT_AS_DRIVER)
    name = "system:serviceaccount:default:default"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    result = testbed.kube.request("POST", path, body=review, headers=[("Impersonate-User", name)])

    assert result["status"]["userInfo"]["username"] == name


def test_only_its_owner_can_read_the_kubeconfig(testbed: Testbed) -> None:
    assert stat.S_IMODE((testbed.folder / "kubeconfig").stat().st_mode) == 0o600


def test_the_nodes_are_those_of_the_api_and_two_take_pods(testbed: Testbed, workers: list[str]) -> None:
    names = sorted(node["metadata"]["name"] for node in testbed.kube.list("v1", "Node"))

    assert [node.name for node in testbed.cluster.nodes()] == names
    assert len(workers) == 2


def test_the_version_and_the_enabled_feature_gates_are_detected(testbed: Testbed) -> None:
    found = features.read(testbed.kube)

    assert found.version.startswith(testbed.config.kubernetes)
    assert found.gates is not None
    assert found.gates["DRAConsumableCapacity"]
    assert found.resource_versions[0] == "v1"


def test_pods_can_connect_to_pods_on_another_node(kubectl: Kubectl, workers: list[str]) -> None:
    address = kubectl.run_pod("server", "httpd -p 8080 -h /etc; sleep 3600", workers[1])
    kubectl.run_pod("client", "sleep 3600", workers[0])

    assert kubectl("exec", "client", "--", "wget", "-qO-", f"http://{address}:8080/hostname").stdout.strip() == "server"


def test_logs_and_exec_work(kubectl: Kubectl) -> None:
    kubectl.run_pod("talker", "echo hello; sleep 3600")

    assert kubectl("logs", "talker").stdout == "hello\n"
    assert kubectl("exec", "talker", "--", "hostname").stdout == "talker\n"


def test_port_forward_works(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.run_pod("page", "httpd -p 8080 -h /etc; sleep 3600")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv: list[str | Path] = [
        kubectl.program,
        f"--kubeconfig={kubectl.kubeconfig}",
        "port-forward",
        "pod/page",
        f"{port}:8080",
    ]
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


def test_a_pod_can_connect_to_the_api_server_at_its_service_address(kubectl: Kubectl) -> None:
    kubectl.run_pod("caller", "sleep 3600")
    knock = "nc -w 2 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open"

    assert kubectl("exec", "caller", "--", "sh", "-c", knock).stdout == "open\n"


def test_the_api_server_accepts_a_pods_token_as_its_service_account(testbed: Testbed, kubectl: Kubectl) -> None:
    kubectl.run_pod("account", "sleep 3600")
    token = kubectl("exec", "account", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token").stdout

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": token}}
    status = testbed.kube.create(review)["status"]

    assert status["user"]["username"] == "system:serviceaccount:default:default"


def test_a_program_runs_on_a_node_and_its_exit_code_is_returned(testbed: Testbed, workers: list[str]) -> None:
    cluster = able(testbed, Capability.RUN_ON_NODE)
    node = next(node for node in cluster.nodes() if node.name == workers[0])

    assert node.run("sh", "-c", "hostname; ls -d /var/lib/kubelet").stdout.split() == [workers[0], "/var/lib/kubelet"]
    assert node.run("sh", "-c", "exit 3", check=False).code == 3


def test_an_image_from_an_archive_is_loaded_into_every_node_and_may_be_loaded_twice(
    testbed: Testbed, kubectl: Kubectl, workers: list[str], tmp_path: Path
) -> None:
    cluster = able(testbed, Capability.LOAD_IMAGE)
    archive = _another_name("localhost/contract/loaded:1", tmp_path)
    cluster.load_image(archive)
    cluster.load_image(archive)

    for worker in workers:
        assert kubectl.run_pod(f"loaded-{worker[-1]}", "sleep 3600", worker, image="localhost/contract/loaded:1")


def test_logs_are_collected(testbed: Testbed, tmp_path: Path) -> None:
    testbed.cluster.collect_logs(tmp_path)

    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]


def test_a_drivers_socket_can_be_connected_to(testbed: Testbed, workers: list[str]) -> None:
    cluster = able(testbed, Capability.DRIVER_SOCKET)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(cluster.socket(workers[0], "/run/containerd/containerd.sock")))


def test_pods_survive_a_restart_of_kubelet_and_runtime(testbed: Testbed, kubectl: Kubectl, workers: list[str]) -> None:
    cluster = able(testbed, Capability.RESTART_KUBELET, Capability.RESTART_RUNTIME)
    kubectl.run_pod("survivor", "sleep 3600", workers[0])
    cluster.stop_kubelet(workers[0])
    cluster.stop_runtime(workers[0])
    cluster.start_runtime(workers[0])
    cluster.start_kubelet(workers[0])
    node_ready(testbed, workers[0])

    status = testbed.kube.get("v1", "Pod", "survivor", "default")["status"]
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)
    assert eventually(lambda: answer(kubectl, "survivor"), "the kubelet to know its pods again", READY) == "here\n"


def test_a_reboot_clears_run_and_keeps_var_lib(testbed: Testbed, workers: list[str]) -> None:
    cluster = able(testbed, Capability.REBOOT_NODE, Capability.RUN_ON_NODE)
    node = next(node for node in cluster.nodes() if node.name == workers[1])
    node.run("sh", "-c", "mkdir -p /run/cdi; touch /run/cdi/lost /var/run/gone /var/lib/kubelet/kept")
    cluster.reboot(node.name)
    node_ready(testbed, node.name)

    rebooted = next(each for each in cluster.nodes() if each.name == node.name)
    assert not rebooted.run("ls", "/run/cdi/lost", check=False).ok
    assert rebooted.run("ls", "/var/lib/kubelet/kept").ok


def test_a_reset_node_has_forgotten_what_drivers_stored_on_its_disk(testbed: Testbed, workers: list[str]) -> None:
    cluster = able(testbed, Capability.RESET_NODE, Capability.RUN_ON_NODE)
    node = next(node for node in cluster.nodes() if node.name == workers[1])
    stored = "/var/lib/kubelet/plugins/driver/claims /etc/cdi/driver.json /var/lib/kubelet/dra_manager_state"
    node.run("sh", "-c", f"mkdir -p /var/lib/kubelet/plugins/driver /etc/cdi; touch {stored}")
    cluster.reset_node(node.name)
    node_ready(testbed, node.name)

    reset = next(each for each in cluster.nodes() if each.name == node.name)
    assert not reset.run("sh", "-c", "ls /etc/cdi/driver.json || ls /var/lib/kubelet/plugins/driver", check=False).ok


def test_a_reboot_changes_the_boot_id_of_the_node_and_of_its_containers(
    testbed: Testbed, kubectl: Kubectl, workers: list[str]
) -> None:
    cluster = able(testbed, Capability.REBOOT_NODE, Capability.RUN_ON_NODE)
    boot_id = ("cat", "/proc/sys/kernel/random/boot_id")
    kubectl.run_pod("before", "sleep 600", workers[1])
    before = kubectl("exec", "before", "--", *boot_id).stdout
    cluster.reboot(workers[1])
    node_ready(testbed, workers[1])
    kubectl.run_pod("after", "sleep 600", workers[1])
    kubectl.run_pod("privileged-after", "sleep 600", workers[1], is_privileged=True)

    on_node = next(each for each in cluster.nodes() if each.name == workers[1]).run(*boot_id).stdout
    info = testbed.kube.get("v1", "Node", workers[1])["status"]["nodeInfo"]
    assert on_node != before
    assert on_node == kubectl("exec", "after", "--", *boot_id).stdout
    assert on_node == kubectl("exec", "privileged-after", "--", *boot_id).stdout
    assert on_node == f"{info['bootID']}\n"


def test_the_api_server_restarts_with_its_objects(testbed: Testbed, kubectl: Kubectl) -> None:
    cluster = able(testbed, Capability.RESTART_API_SERVER)
    kubectl("create", "configmap", "kept", "--from-literal=a=b")
    cluster.restart_api_server()

    assert testbed.kube.get("v1", "ConfigMap", "kept", "default")["data"] == {"a": "b"}


@pytest.mark.parametrize("component", ["etcd", "kube-scheduler", "kube-controller-manager"])
def test_a_component_of_the_control_plane_restarts(testbed: Testbed, kubectl: Kubectl, component: str) -> None:
    cluster = able(testbed, Capability.RESTART_CONTROL_PLANE)
    cluster.restart_control_plane(component)

    def serves() -> None:
        """Check that a namespace gets its service account, which the controller manager creates."""
        created = kubectl("create", "namespace", f"after-{component}", check=False)
        found = kubectl("get", "serviceaccount", "default", "-n", f"after-{component}", check=False)
        if not found.ok:
            raise NotYet(f"{created.stderr} {found.stderr}")

    eventually(serves, f"{component} to work again", READY)
    kubectl.run_pod(f"after-{component}", "sleep 600")  # scheduled: no node is given


def _another_name(reference: str, folder: Path) -> Path:
    """Return an archive of an image that no node has: the workload's files and one more, under another name."""
    original = images.workload(Silent())
    assert original.reference == WORKLOAD
    own = oci.write_layer([tarball.file("contract", b"kept\n")], folder / "own.tar")
    base = oci.Layer.of(_layer_of(original.archive, folder))
    config = oci.configuration(oci.ContainerSettings(cmd=("sh",)), [base, own], ["workload", "contract"])
    oci.write_archive(reference, config, [base, own], folder / "image.tar")
    return folder / "image.tar"


def _layer_of(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        listed = tar.extractfile("manifest.json")
        assert listed is not None
        layer = tar.extractfile(json.load(listed)[0]["Layers"][0])
        assert layer is not None
        (folder / "base.tar").write_bytes(layer.read())
    return folder / "base.tar"
