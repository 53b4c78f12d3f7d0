"""The provider: its preflight, creating and deleting a cluster, and which clusters it sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError, WaitTimeout
from testbed.kube.client import Object
from testbed.models.sections import KindSection
from testbed.progress import Silent
from testbed.providers import inotify
from testbed.providers.base import (
    Artifacts,
    Cluster,
    ClusterSpec,
    LoadsImages,
    NodeImage,
    RebootsNodes,
    ResetsNodes,
    RestartsApiServer,
    RestartsControlPlane,
    RestartsNodeComponents,
)
from testbed.providers.kind import KindProvider, checks, provider, record
from testbed.providers.kind.node_processes import first_process
from testbed.waiting import set_patience
from tests.providers.kind.conftest import FakeEngine

NODE = NodeImage("1.37.1", "node:1", lambda _: ("made", Path("made.tar")))


class NoNodes:
    """An API server in which no kubelet has registered."""

    def list(self, version: str, kind: str) -> list[Object]:
        return []


SPEC = ClusterSpec("1.37.1", nodes=1)


def artifacts(kind: Path) -> Artifacts:
    return Artifacts({"kind": kind}, node_images={"1.37.1": NODE})


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checks, provider):
        monkeypatch.setattr(module, "lacks_sys_resource", lambda: False)
    monkeypatch.setattr(inotify, "available", lambda wanted: wanted)


def kind_that(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "kind"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("ordinary")
def test_an_engine_that_does_not_answer_is_a_fatal_problem(fake_engine: FakeEngine) -> None:
    fake_engine("*) exit 1;;")

    assert [problem.fatal for problem in KindProvider().preflight(SPEC)] == [True]


@pytest.mark.usefixtures("ordinary")
def test_an_old_kind_on_path_is_a_remark(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("*) echo '{}';;")
    kind_that(tmp_path / "bin", "echo kind version 0.20.0")

    (problem,) = KindProvider().preflight(SPEC)

    assert not problem.fatal
    assert "kind version 0.20.0" in problem.what


def test_a_gate_that_the_scheduler_does_not_know_is_refused() -> None:
    asked = ClusterSpec("1.37.1", feature_gates={"X": True}, gates_unknown_to_scheduler=frozenset({"X"}))

    with pytest.raises(UsageError, match="the scheduler does not know X"):
        KindProvider().preflight(asked)


def test_an_existing_cluster_of_that_name_is_refused(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("ps*) echo node theirs;;")

    with pytest.raises(UsageError, match="exists already"):
        KindProvider().create("dev", SPEC, artifacts(Path("kind")), tmp_path / "cluster", Silent())
    assert not (tmp_path / "cluster").exists()


@pytest.mark.usefixtures("ordinary")
def test_the_output_of_a_failed_kind_is_kept_and_quoted(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("image*) echo sha256:1;;\n*) ;;")
    kind = kind_that(tmp_path, "echo ' ✓ Preparing nodes'; echo 'ERROR: failed to create cluster: port taken'; exit 1")
    folder = tmp_path / "cluster"

    with pytest.raises(TestbedError, match="ERROR: failed to create cluster: port taken"):
        KindProvider().create("dev", SPEC, artifacts(kind), folder, Silent())
    assert "Preparing nodes" in (folder / "kind.log").read_text()
    half = KindProvider().attach("dev", folder)
    assert half is not None
    (tmp_path / "logs").mkdir()
    half.collect_logs(tmp_path / "logs")
    assert "ERROR" in (tmp_path / "logs/kind.log").read_text()


@pytest.mark.usefixtures("ordinary")
def test_the_error_for_nodes_that_are_not_ready_names_them_and_their_logs(
    fake_engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, folder = tmp_path / "made", tmp_path / "cluster"
    kind = kind_that(tmp_path, f": > {made}; : > {folder}/kubeconfig")
    fake_engine(f"image*) echo sha256:1;;\nps*) [ ! -e {made} ] || echo dev-worker dev;;\n*) ;;")
    monkeypatch.setattr(provider, "Kube", lambda _: NoNodes())
    set_patience(0.001)
    try:
        with pytest.raises(WaitTimeout, match="dev-worker: not registered") as told:
            KindProvider().create("dev", SPEC, artifacts(kind), folder, Silent())
    finally:
        set_patience(1.0)

    assert told.value.hint == "dra-testbed logs --name dev"


@pytest.mark.usefixtures("ordinary")
def test_kinds_output_below_its_error_is_quoted_and_a_long_one_is_shortened(
    fake_engine: FakeEngine, tmp_path: Path
) -> None:
    fake_engine("image*) echo sha256:1;;\n*) ;;")
    says = "echo 'ERROR: failed to create cluster: unable to decode config: yaml: unmarshal errors:'"

    kind = kind_that(tmp_path, f"{says}; echo '  line 17: field nodez not found'; exit 1")
    with pytest.raises(TestbedError, match=r"unable to decode config(.|\n)*field nodez not found"):
        KindProvider().create("dev", SPEC, artifacts(kind), tmp_path / "one", Silent())

    kind = kind_that(
        tmp_path,
        f"{says}; for a in 0 1 2 3 4 5 6 7 8 9; do for b in 0 1 2 3 4 5 6 7 8 9; do echo line 10$a$b; done; done; exit 1",
    )
    with pytest.raises(TestbedError, match=r"unable to decode config(.|\n)*1099") as told:
        KindProvider().create("dev", SPEC, artifacts(kind), tmp_path / "two", Silent())
    assert "line 1050" not in told.value.what


def test_delete_removes_containers_and_folder_and_may_be_called_twice(fake_engine: FakeEngine, tmp_path: Path) -> None:
    folder, left = tmp_path / "cluster", tmp_path / "left"
    folder.mkdir()
    left.write_text("node mine\n")
    (folder / "kind.json").write_text(json.dumps({"cluster": "mine", "kind": "kind", "engine": "docker"}))
    asked = fake_engine(f"*cluster=mine*) cat {left};;\nrm*) : > {left};;")

    KindProvider().delete("dev", folder)
    KindProvider().delete("dev", folder)

    assert asked.read_text().count("rm --force --volumes node") == 1
    assert not folder.exists()


def test_sweep_keeps_foreign_clusters_and_those_in_use(fake_engine: FakeEngine, tmp_path: Path) -> None:
    gone, used = (record.kind_name(name, Path(f"/state/{name}/cluster")) for name in ("gone", "used"))
    clusters = rf"a {gone}\nb {used}\nc theirs\nd dratb-foreign-0003\ne dratb-gone-00000000"
    left = tmp_path / "left"
    left.write_text(f"a {gone}\n")
    asked = fake_engine(
        f"*cluster={gone}*) cat {left};;\n*cluster=*) ;;\nps*) printf '{clusters}\\n';;\nrm*) : > {left};;\n"
        "inspect*a) echo '/kind/dra-testbed /state/gone/cluster/shared';;\n"
        "inspect*b) echo '/kind/dra-testbed /state/used/cluster/shared';;\n"
        "inspect*c) echo '/kind/dra-testbed /state/gone/cluster/shared';;\n"
        "inspect*d) echo '/var /volume';;\n"
        "inspect*e) echo '/kind/dra-testbed /state/gone/cluster/shared';;"  # of the same folder on another host
    )

    removed = KindProvider().sweep(lambda folder: folder.parent.name == "used")

    assert removed == [f"kind cluster {gone}"]
    assert [line for line in asked.read_text().splitlines() if line.startswith("rm")] == ["rm --force --volumes a"]


def test_a_cluster_in_another_engine_is_not_deleted(fake_engine: FakeEngine, tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    content = {"cluster": "mine", "kind": "kind", "engine": "docker", "variables": {}, "id": "ENGINE-1"}
    (folder / "kind.json").write_text(json.dumps(content))
    fake_engine("info*) echo ENGINE-2;;\n*) ;;")

    with pytest.raises(TestbedError, match="are in another container engine"):
        KindProvider().delete("dev", folder)
    assert (folder / "kind.json").exists()


@pytest.mark.usefixtures("ordinary")
def test_kind_is_always_run_with_the_engine_of_the_cluster(
    fake_engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("-v) echo Docker version 1;;\nps*mine*) echo node mine;;\nimage*) echo sha256:1;;\n*) ;;")
    said = tmp_path / "said"
    kind = kind_that(tmp_path, f'echo "$1 $KIND_EXPERIMENTAL_PROVIDER $DOCKER_HOST" >> {said}; exit 1')
    monkeypatch.setenv("DOCKER_HOST", "unix:///then")
    monkeypatch.delenv("KIND_EXPERIMENTAL_PROVIDER", raising=False)
    folder = tmp_path / "cluster"

    with pytest.raises(TestbedError, match="kind could not create the cluster"):
        KindProvider().create("dev", SPEC, artifacts(kind), folder, Silent())
    monkeypatch.setenv("DOCKER_HOST", "unix:///now")
    monkeypatch.setenv("KIND_EXPERIMENTAL_PROVIDER", "podman")
    made = KindProvider().attach("dev", folder)
    assert made is not None
    (tmp_path / "logs").mkdir()
    fake_engine("ps*) echo node mine;;\n*) ;;")
    made.collect_logs(tmp_path / "logs")

    assert said.read_text().splitlines() == ["create docker unix:///then", "export docker unix:///then"]


@pytest.mark.usefixtures("ordinary")
def test_preflight_refuses_a_node_image_of_another_version(fake_engine: FakeEngine) -> None:
    fake_engine("image*) echo sha256:1;;\nrun*) echo v1.36.4;;\n*) echo '{}';;")
    asked = ClusterSpec("1.37.1", options=KindSection.model_construct(node_image="mine:1"))

    with pytest.raises(UsageError, match=r"mine:1 has Kubernetes 1\.36\.4, but 1\.37\.1 was asked for"):
        KindProvider().preflight(asked)


@pytest.mark.usefixtures("ordinary")
def test_preflight_does_not_pull_a_node_image(fake_engine: FakeEngine) -> None:
    asked = fake_engine("image*) exit 1;;\n*) echo '{}';;")
    wish = ClusterSpec("1.37.1", options=KindSection.model_construct(node_image="mine:1"))

    assert [problem for problem in KindProvider().preflight(wish) if problem.fatal] == []
    assert not [line for line in asked.read_text().splitlines() if line.startswith(("run", "pull"))]


def test_its_clusters_implement_the_protocols_of_their_capabilities(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("ps*) echo node mine;;")
    (tmp_path / "kind.json").write_text(json.dumps({"cluster": "mine", "kind": "kind", "engine": "docker"}))
    cluster = KindProvider().attach("dev", tmp_path)

    for protocol in (
        Cluster,
        LoadsImages,
        RestartsNodeComponents,
        RebootsNodes,
        ResetsNodes,
        RestartsApiServer,
        RestartsControlPlane,
    ):
        assert isinstance(cluster, protocol)


def test_a_component_of_the_control_plane_is_killed_in_its_node(fake_engine: FakeEngine, tmp_path: Path) -> None:
    asked = fake_engine("ps*) echo mine-control-plane mine; echo mine-worker mine;;")
    (tmp_path / "kind.json").write_text(json.dumps({"cluster": "mine", "kind": "kind", "engine": "docker"}))
    cluster = KindProvider().attach("dev", tmp_path)
    assert cluster
    cluster.restart_control_plane("kube-scheduler")
    assert asked.read_text().splitlines()[-1].startswith("exec mine-control-plane sh -c kill -KILL")
    assert asked.read_text().splitlines()[-1].endswith(" kube-scheduler")


def test_the_first_process_of_a_node_is_process_1_with_the_nodes_host_name(tmp_path: Path) -> None:
    # Process 11 is a pod of the node that is being started and still has the node's root.
    for pid, inner, name in (
        *((7, "7", "host"), (8, "8\t1", "other"), (11, "11\t5\t3\t1", "node")),
        *((9, "9\t3\t1", "node"), (10, "10\t4\t2", "node")),
    ):
        (tmp_path / str(pid) / "root/etc").mkdir(parents=True)
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nNSpid:\t{inner}\n")
        (tmp_path / str(pid) / "root/etc/hostname").write_text(f"{name}\n")

    assert first_process("node", tmp_path) == 9
    assert first_process("nobody", tmp_path) is None
