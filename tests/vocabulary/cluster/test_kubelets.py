"""PodResources from a server on a real socket, metrics from a page, and CDI files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from testbed import process
from testbed.drivers.published.slices import Device
from testbed.errors import CommandFailed, DriverFailed, NothingToJudge, TestbedError
from testbed.kubelet.stubs import podresources_v1_pb2 as messages
from testbed.kubelet.stubs import podresources_v1_pb2_grpc as stubs
from testbed.process import Completed
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.cluster.cdi_specs import CdiEntry
from testbed.vocabulary.cluster.kubelets import Kubelets, value
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.pods.container import with_digest
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.world import World
from tests.fakes.cluster import DRIVER

PREPARE = f'driver_name="{DRIVER}",method_name="/v1.DRAPlugin/NodePrepareResources"'
METRICS = f"""# TYPE dra_resource_claims_in_use gauge
dra_resource_claims_in_use{{driver_name="<any>"}} 3
dra_resource_claims_in_use{{driver_name="{DRIVER}"}} 2
dra_grpc_operations_duration_seconds_count{{{PREPARE},grpc_status_code="OK"}} 7
dra_grpc_operations_duration_seconds_count{{{PREPARE},grpc_status_code="Unknown"}} 1
"""
FILE = '{"kind": "d.example/device", "devices": [{"name": "a"}, {"name": "b"}]}'


class Lister(stubs.PodResourcesListerServicer):
    """Knows one pod."""

    def __init__(self) -> None:
        device = messages.ClaimResource(
            driver_name=DRIVER, pool_name="node-1", device_name="gpu-0", cdi_devices=[{"name": "d.example/device=a"}]
        )
        claim = messages.DynamicResource(claim_name="c", claim_namespace="here", claim_resources=[device])
        containers = [messages.ContainerResources(name=name, dynamic_resources=[claim]) for name in ("one", "two")]
        self.pods = [messages.PodResources(name="p", namespace="here", containers=containers)]

    def List(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - as on the wire
        return messages.ListPodResourcesResponse(pod_resources=self.pods)

    def Get(self, request: Any, _context: Any) -> Any:  # noqa: N802 - as on the wire
        (found,) = (
            each for each in self.pods if (each.namespace, each.name) == (request.pod_namespace, request.pod_name)
        )
        return messages.GetPodResourcesResponse(pod_resources=found)


@dataclass(frozen=True)
class Node:
    """This host."""

    name: str
    before: Callable[[tuple[str, ...]], None] = lambda _argv: None

    def run(self, *argv: str, check: bool = True) -> Completed:
        self.before(argv)
        return process.run(argv, check=check)


class UnreachableNode(Node):
    """A node that does not answer."""

    def run(self, *_argv: str, check: bool = True) -> Completed:
        return process.run(["sh", "-c", "echo no such node >&2; exit 1"], check=check)


@dataclass(frozen=True)
class Cluster:
    there: Path
    node: Node = Node("node-1")
    name: str = "t"

    def nodes(self) -> list[Node]:
        return [self.node]

    def socket(self, node: str, path: str) -> Path:
        assert (node, path) == ("node-1", "/var/lib/kubelet/pod-resources/kubelet.sock")
        return self.there


@pytest.fixture
def lister() -> Lister:
    return Lister()


@pytest.fixture
def kubelets(world: Callable[..., World], lister: Lister, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubelets]:
    here = world()
    kube: Any = here.kube
    kube.put("Pod", "p", "here", spec={"nodeName": "node-1", "containers": [{"name": "one"}]})
    kube.put("Pod", "plain", "here", spec={"nodeName": "node-1", "containers": [{"name": "one"}]})
    monkeypatch.setattr(kube, "request", lambda _method, _path: METRICS)
    server = grpc.server(ThreadPoolExecutor(1))
    stubs.add_PodResourcesListerServicer_to_server(lister, server)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        server.add_insecure_port(f"unix:{folder}/s")
        server.start()
        yield Kubelets(replace(here, cluster=Cluster(Path(folder, "s"))))  # type: ignore[arg-type]  # the parts that are asked
        server.stop(None).wait()


def test_the_devices_of_a_pod_are_listed_by_claim(kubelets: Kubelets) -> None:
    pod, plain = (Pod(kubelets.world, "here", name) for name in ("p", "plain"))

    assert kubelets.list_claims(pod) == kubelets.get_claims(pod) == {"c": {Device(DRIVER, "node-1", "gpu-0")}}
    assert kubelets.list_claims(plain) == {}
    assert kubelets.cdi_ids(pod) == {"d.example/device=a"}
    assert kubelets.list_shares(pod) == NONE


def test_the_shares_of_a_pod_are_listed(kubelets: Kubelets, lister: Lister) -> None:
    lister.pods[0].containers[0].dynamic_resources[0].claim_resources[0].share_id = "one"
    lister.pods[0].containers[1].dynamic_resources[0].claim_resources[0].share_id = "other"

    assert kubelets.list_shares(Pod(kubelets.world, "here", "p")) == {"one", "other"}


def test_a_driver_that_names_no_devices_has_no_shares(kubelets: Kubelets, lister: Lister) -> None:
    for container in lister.pods[0].containers:
        del container.dynamic_resources[0].claim_resources[:]
    pod = Pod(kubelets.world, "here", "p")
    assert kubelets.list_claims(pod) == {"c": NONE}
    with pytest.raises(NothingToJudge, match="names no devices in its answer"):
        kubelets.list_shares(pod)


def test_a_pod_without_claims_is_listed_too(kubelets: Kubelets, lister: Lister) -> None:
    plain = Pod(kubelets.world, "here", "plain")
    assert not kubelets.lists(plain)
    lister.pods.append(messages.PodResources(name="plain", namespace="here"))
    assert kubelets.lists(plain)
    assert kubelets.list_claims(plain) == {}


def test_a_claim_in_another_namespace_has_another_name(kubelets: Kubelets, lister: Lister) -> None:
    for container in lister.pods[0].containers:
        container.dynamic_resources[0].claim_namespace = "there"
    assert kubelets.list_claims(Pod(kubelets.world, "here", "p")).keys() == {"there/c"}


def test_a_pod_whose_claims_are_still_listed(kubelets: Kubelets, lister: Lister) -> None:
    pod = Pod(kubelets.world, "here", "p")
    with pytest.raises(NotObserved, match="it lists"):
        kubelets.should_list_no_claims(pod, "node-1")
    lister.pods.clear()
    kubelets.should_list_no_claims(pod, "node-1")


def test_metrics_of_the_driver(kubelets: Kubelets) -> None:
    assert kubelets.claims_in_use("node-1") == 2
    assert kubelets.calls("node-1", "NodePrepareResources") == 7
    assert kubelets.calls("node-1", "NodeUnprepareResources") == 0
    kubelets.should_have_claims_in_use("node-1", 2)
    with pytest.raises(NotObserved, match="last seen: dra_resource_claims_in_use is 2"):
        kubelets.should_have_claims_in_use("node-1", 1)


def test_the_samples_of_a_metric_are_added_up() -> None:
    assert value(METRICS, "dra_resource_claims_in_use") == 5
    assert value(METRICS, "dra_resource_claims") == 0


@pytest.fixture
def cdi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only CDI folder that exists."""
    monkeypatch.setattr(
        "testbed.vocabulary.cluster.cdi_files.FOLDERS", (str(tmp_path / "missing"), str(tmp_path / "cdi"))
    )
    (tmp_path / "cdi").mkdir()
    return tmp_path / "cdi"


def _with(kubelets: Kubelets, node: Node) -> Kubelets:
    """Return kubelets of a cluster that has this node."""
    return Kubelets(replace(kubelets.world, cluster=Cluster(Path(), node)))  # type: ignore[arg-type]  # the parts that are asked


def test_cdi_files_of_a_node(kubelets: Kubelets, cdi: Path) -> None:
    assert kubelets.cdi_content("node-1") == frozenset()
    (cdi / "one.json").write_text(FILE)
    (cdi / "two more.yaml").write_text("kind: d.example/other\ndevices: [{name: a}]\n")

    assert sorted(map(str, kubelets.cdi_content("node-1"))) == [
        f"{cdi}/one.json",
        f"{cdi}/two more.yaml",
        f"d.example/device=a in {cdi}/one.json",
        f"d.example/device=b in {cdi}/one.json",
        f"d.example/other=a in {cdi}/two more.yaml",
    ]


def test_the_definitions_of_a_pods_cdi_ids(kubelets: Kubelets, cdi: Path) -> None:
    pod = Pod(kubelets.world, "here", "p")
    edits = '{"kind": "d.example/device",\t"containerEdits": {"env": ["B=2"]}, "devices": [{"name": "a", "containerEdits": %s}]}'
    (cdi / "one.json").write_text(edits % '{"env": ["A=1"]}')
    before = kubelets.cdi_definitions(pod)
    assert list(before) == ["d.example/device=a"]

    (cdi / "one.json").write_text(edits % '{"env": ["A=2"]}')
    after = kubelets.cdi_definitions(pod)
    assert before | after != after | before


def test_what_the_cdi_ids_of_a_pod_add_to_its_containers(kubelets: Kubelets, cdi: Path) -> None:
    pod = Pod(kubelets.world, "here", "p")
    spec: Any = {"kind": "d.example/device", "devices": [{"name": "a"}]}
    (cdi / "one.json").write_text(json.dumps(spec))
    with pytest.raises(NothingToJudge, match="add no variable, mount or device node"):
        kubelets.cdi_edits(pod)

    spec["containerEdits"] = {"env": ["A=1", "B=2"]}
    spec["devices"][0]["containerEdits"] = {
        "env": ["A=2"],
        "mounts": [{"hostPath": "/x", "containerPath": "/opt/x/"}],
        "deviceNodes": [{"path": "/dev/x"}],
    }
    (cdi / "one.json").write_text(json.dumps(spec))
    assert kubelets.cdi_edits(pod) == {with_digest("B=2"), "/opt/x", "/dev/x"}


def test_the_cdi_ids_that_two_claims_have_in_common(kubelets: Kubelets, lister: Lister) -> None:
    pod, plain = (Pod(kubelets.world, "here", name) for name in ("p", "plain"))
    lister.pods.append(messages.PodResources(name="plain", namespace="here"))
    assert kubelets.common_cdi_ids(pod, {"d.example/device=a": "", "d.example/device=b": ""}) == {"d.example/device=a"}
    assert kubelets.common_cdi_ids(pod, {"d.example/device=b": ""}) == NONE
    with pytest.raises(NothingToJudge, match="the driver returns no CDI ID"):
        kubelets.common_cdi_ids(plain, {"d.example/device=a": ""})
    with pytest.raises(NothingToJudge, match="the driver returns no CDI ID"):
        kubelets.common_cdi_ids(pod, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"kind": "d.example/dev', "neither JSON nor YAML"),
        ('{"devices": [{"name": "a"}]}', "it lacks 'kind'"),
        ('{"kind": "d.example/device"}', "it lacks 'devices'"),
        ('{"kind": "d.example/device", "devices": [{}]}', "it lacks 'name'"),
        ('{"kind": "d.example/device", "devices": ["a"]}', "does not match the CDI schema"),
        ("[]", "does not match the CDI schema"),
        ("nothing", "does not match the CDI schema"),
    ],
)
def test_an_unreadable_cdi_file_blames_the_driver_only_if_its_ids_are_missing(
    kubelets: Kubelets, cdi: Path, text: str, why: str
) -> None:
    pod = Pod(kubelets.world, "here", "p")
    (cdi / "somebody.json").write_text(text)
    with pytest.raises(
        DriverFailed,
        match=f"no CDI file on node-1 defines d.example/device=a(?s:.*)somebody.json is unreadable: .*{why}",
    ):
        kubelets.cdi_definitions(pod)

    (cdi / "one.json").write_text(FILE)
    assert list(kubelets.cdi_definitions(pod)) == ["d.example/device=a"]


def test_cdi_files_are_waited_for(kubelets: Kubelets, cdi: Path) -> None:
    before = kubelets.cdi_content("node-1")
    (cdi / "one.json").write_text(FILE)
    kubelets.should_have_cdi_content("node-1", kubelets.cdi_content("node-1"))
    with pytest.raises(NotObserved, match=rf"left behind: {cdi}/one.json, d.example/device=a in {cdi}/one.json"):
        kubelets.should_have_cdi_content("node-1", before)


def test_a_cdi_file_that_has_grown_differs(kubelets: Kubelets, cdi: Path) -> None:
    (cdi / "one.json").write_text('{"kind": "d.example/device", "devices": [{"name": "a"}]}')
    before = kubelets.cdi_content("node-1")
    (cdi / "one.json").write_text('{"kind": "d.example/device", "devices": [{"name": "a"}, {"name": "b"}]}')
    with pytest.raises(NotObserved, match=rf"last seen: left behind: d.example/device=b in {cdi}/one.json\n"):
        kubelets.should_have_cdi_content("node-1", before)


def test_a_definition_that_has_grown_differs(kubelets: Kubelets, cdi: Path) -> None:
    pod, text = Pod(kubelets.world, "here", "p"), '{"kind": "d.example/device", "devices": [{"name": "a", "x": %s}]}'
    (cdi / "one.json").write_text(text % '["SECRET=1"]')
    before, defined = kubelets.cdi_content("node-1"), kubelets.cdi_definitions(pod)
    assert kubelets.ids_defined_as(defined, "node-1") == {"d.example/device=a"}

    (cdi / "one.json").write_text(text % '["SECRET=1", "SECRET=2"]')
    assert kubelets.ids_defined_as(defined, "node-1") == NONE
    with pytest.raises(NotObserved, match=rf"last seen: changed: d.example/device=a in {cdi}/one.json\n") as raised:
        kubelets.should_have_cdi_content("node-1", before)
    assert "SECRET" not in str(raised.value)


def test_an_unreadable_cdi_file_that_changes_differs(kubelets: Kubelets, cdi: Path) -> None:
    (cdi / "one.json").write_text("nothing")
    before = kubelets.cdi_content("node-1")
    kubelets.should_have_cdi_content("node-1", before)
    (cdi / "one.json").write_text("nothing at all")
    with pytest.raises(NotObserved, match=rf"last seen: changed: {cdi}/one.json\n"):
        kubelets.should_have_cdi_content("node-1", before)


def test_files_that_no_runtime_reads_are_ignored(kubelets: Kubelets, cdi: Path) -> None:
    (cdi / "one.json.new").write_text('{"kind": ')
    (cdi / ".two.json").write_text('{"kind": ')
    (cdi / "folder.json").mkdir()
    assert kubelets.cdi_content("node-1") == frozenset()


def test_a_cdi_file_may_be_removed_before_it_is_read(kubelets: Kubelets, cdi: Path) -> None:
    (cdi / "one.json").write_text(FILE)
    (cdi / "two.json").write_text(FILE)

    def take_away(argv: tuple[str, ...]) -> None:
        if argv[-1].endswith("/two.json"):
            (cdi / "two.json").unlink()

    assert _with(kubelets, Node("node-1", take_away)).cdi_content("node-1") == {
        CdiEntry(f"{cdi}/one.json", "", ""),
        CdiEntry(f"{cdi}/one.json", "d.example/device=a", '[{"name": "a"}, null]'),
        CdiEntry(f"{cdi}/one.json", "d.example/device=b", '[{"name": "b"}, null]'),
    }


def test_a_cdi_file_that_cannot_be_read_is_an_error(kubelets: Kubelets, cdi: Path) -> None:
    (cdi / "one.json").write_text(FILE)

    def replaced(argv: tuple[str, ...]) -> None:
        if argv[-1].endswith("/one.json"):
            (cdi / "one.json").unlink()
            (cdi / "one.json").mkdir()  # root can read all files

    with pytest.raises(CommandFailed, match="directory"):
        _with(kubelets, Node("node-1", replaced)).cdi_content("node-1")


def test_a_node_that_does_not_answer_is_an_error(kubelets: Kubelets) -> None:
    with pytest.raises(CommandFailed, match="no such node"):
        _with(kubelets, UnreachableNode("node-1")).cdi_content("node-1")


def test_a_world_without_a_cluster_is_an_error(world: Callable[..., World]) -> None:
    with pytest.raises(TestbedError, match="needs a running testbed"):
        Kubelets(world()).cdi_content("node-1")


def test_a_cluster_whose_sockets_cannot_be_reached_is_an_error(kubelets: Kubelets) -> None:
    class Far:
        name = "far"

    far = Kubelets(replace(kubelets.world, cluster=Far()))  # type: ignore[arg-type]  # it cannot do anything
    with pytest.raises(TestbedError, match="cannot be reached"):
        far.get_claims(Pod(kubelets.world, "here", "p"))


def test_a_kubelet_that_does_not_answer_is_an_error(kubelets: Kubelets, tmp_path: Path) -> None:
    away = Kubelets(replace(kubelets.world, cluster=Cluster(tmp_path / "nobody")))  # type: ignore[arg-type]  # as above
    with pytest.raises(TestbedError, match=r"the PodResources API of the kubelet on node-1 does not answer: .*connect"):
        away.cdi_ids(Pod(away.world, "here", "p"))
