"""The provider: what it refuses before anything is touched, and what of the engine it calls its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.progress import Silent
from testbed.providers.base import (
    Cluster,
    ClusterSpec,
    LoadsImages,
    NodeImage,
    RebootsNodes,
    RestartsApiServer,
    RestartsParts,
)
from testbed.providers.kind import KindProvider, provider
from testbed.providers.kind.inside import first_process
from tests.providers.kind.conftest import FakeEngine

NODE = NodeImage("1.37.1", "node:1", lambda _: ("made", Path("made.tar")))


def spec(programs: dict[str, Path] | None = None) -> ClusterSpec:
    return ClusterSpec("1.37.1", nodes=1, programs=programs or {}, node_image=lambda _: NODE)


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "lacks_sys_resource", lambda: False)


def kind_that(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "kind"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("ordinary")
def test_an_engine_that_does_not_answer_is_a_problem_of_the_host(fake_engine: FakeEngine) -> None:
    fake_engine("*) exit 1;;")

    assert [problem.fatal for problem in KindProvider().preflight(spec())] == [True]


def test_a_host_whose_root_lacks_a_capability_needs_the_wrapper(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "lacks_sys_resource", lambda: True)
    fake_engine("*DefaultRuntime*) echo runc;;\n*) echo '{}';;")

    (problem,) = KindProvider().preflight(spec())

    assert "CAP_SYS_RESOURCE" in problem.what
    assert "--default-runtime dra-testbed" in problem.cure
    fake_engine("*DefaultRuntime*) echo dra-testbed;;\n*) echo '{}';;")
    assert KindProvider().preflight(spec()) == []


@pytest.mark.usefixtures("ordinary")
def test_an_old_kind_on_path_is_remarked(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("*) echo '{}';;")
    kind_that(tmp_path / "bin", "echo kind version 0.20.0")

    (problem,) = KindProvider().preflight(spec())

    assert not problem.fatal
    assert "kind version 0.20.0" in problem.what


def test_a_gate_that_some_component_does_not_know_is_refused() -> None:
    asked = ClusterSpec("1.37.1", feature_gates={"X": True}, gates_unknown_to_scheduler=frozenset({"X"}))

    with pytest.raises(UsageError, match="the scheduler does not know X"):
        KindProvider().preflight(asked)


def test_a_cluster_of_that_name_is_never_taken_over(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("ps*) echo node theirs;;")

    with pytest.raises(UsageError, match="is there already"):
        KindProvider().create("dev", spec({"kind": Path("kind")}), tmp_path / "cluster", Silent())
    assert not (tmp_path / "cluster").exists()


def test_testbeds_of_the_same_name_in_other_folders_have_clusters_of_their_own(tmp_path: Path) -> None:
    names = {provider._kind_name("dev", tmp_path / place) for place in ("a", "b")}

    assert len(names) == 2
    assert all(len(f"{name}-control-plane") <= 63 for name in names)


@pytest.mark.usefixtures("ordinary")
def test_when_kind_fails_its_own_words_are_kept_and_said(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("image*) echo sha256:1;;\n*) ;;")
    kind = kind_that(tmp_path, "echo ' ✓ Preparing nodes'; echo 'ERROR: failed to create cluster: port taken'; exit 1")
    folder = tmp_path / "cluster"

    with pytest.raises(TestbedError, match="ERROR: failed to create cluster: port taken"):
        KindProvider().create("dev", spec({"kind": kind}), folder, Silent())
    assert "Preparing nodes" in (folder / "kind.log").read_text()
    half = KindProvider().attach("dev", folder)
    assert half is not None
    (tmp_path / "logs").mkdir()
    half.collect_logs(tmp_path / "logs")
    assert "ERROR" in (tmp_path / "logs/kind.log").read_text()


def test_deleting_removes_containers_and_folder_and_twice_is_fine(fake_engine: FakeEngine, tmp_path: Path) -> None:
    folder, left = tmp_path / "cluster", tmp_path / "left"
    folder.mkdir()
    left.write_text("node mine\n")
    (folder / "kind.json").write_text(json.dumps({"cluster": "mine", "kind": "kind", "engine": "docker"}))
    asked = fake_engine(f"*cluster=mine*) cat {left};;\nrm*) : > {left};;")

    KindProvider().delete("dev", folder)
    KindProvider().delete("dev", folder)

    assert asked.read_text().count("rm --force --volumes node") == 1
    assert not folder.exists()


def test_a_sweep_leaves_foreign_clusters_and_those_in_use(fake_engine: FakeEngine, tmp_path: Path) -> None:
    clusters = "a dratb-gone-0001\\nb dratb-used-0002\\nc theirs\\nd dratb-foreign-0003"
    left = tmp_path / "left"
    left.write_text("a dratb-gone-0001\n")
    asked = fake_engine(
        f"*cluster=dratb-gone-0001*) cat {left};;\nps*) printf '{clusters}\\n';;\nrm*) : > {left};;\n"
        "inspect*a) echo '/kind/dra-testbed /state/gone/cluster/shared';;\n"
        "inspect*b) echo '/kind/dra-testbed /state/used/cluster/shared';;\n"
        "inspect*c) echo '/kind/dra-testbed /state/gone/cluster/shared';;\n"
        "inspect*d) echo '/var /volume';;"
    )

    removed = KindProvider().sweep(lambda folder: folder.parent.name == "used")

    assert removed == ["kind cluster dratb-gone-0001"]
    assert [line for line in asked.read_text().splitlines() if line.startswith("rm")] == ["rm --force --volumes a"]


def test_its_clusters_fulfil_the_protocols_of_their_abilities(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("ps*) echo node mine;;")
    (tmp_path / "kind.json").write_text(json.dumps({"cluster": "mine", "kind": "kind", "engine": "docker"}))
    cluster = KindProvider().attach("dev", tmp_path)

    for protocol in (Cluster, LoadsImages, RestartsParts, RebootsNodes, RestartsApiServer):
        assert isinstance(cluster, protocol)


def test_a_nodes_first_process_is_the_one_with_number_one_and_its_name(tmp_path: Path) -> None:
    for pid, inner, name in ((7, "7", "host"), (8, "8\t1", "other"), (9, "9\t3\t1", "node"), (10, "10\t4\t2", "node")):
        (tmp_path / str(pid) / "root/etc").mkdir(parents=True)
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nNSpid:\t{inner}\n")
        (tmp_path / str(pid) / "root/etc/hostname").write_text(f"{name}\n")

    assert first_process("node", tmp_path) == 9
    assert first_process("nobody", tmp_path) is None


@pytest.mark.parametrize(("most", "remarks"), [("64", 1), ("128", 0), ("not a number", 0)])
def test_too_few_inotify_instances_are_remarked_with_their_cure(tmp_path: Path, most: str, remarks: int) -> None:
    setting = tmp_path / "max_user_instances"
    setting.write_text(f"{most}\n")

    found = provider._inotify(2, setting)

    assert len(found) == remarks
    assert all("sysctl fs.inotify.max_user_instances=512" in problem.cure and not problem.fatal for problem in found)
