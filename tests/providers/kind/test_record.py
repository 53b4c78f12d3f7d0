"""The name of a kind cluster, and the record by which it is found again in its engine."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.kind import record
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

STATE = Path("/state/dev/cluster")


def saved(folder: Path, **variables: str) -> KindCluster:
    cluster = KindCluster("dev", folder, "dratb-dev-1", Path("kind"), Engine("docker", variables))
    record.save(cluster)
    return cluster


def test_testbeds_of_the_same_name_in_other_folders_have_different_clusters() -> None:
    assert record.kind_name("dev", Path("/a/dev/cluster")) != record.kind_name("dev", Path("/b/dev/cluster"))


@pytest.mark.parametrize(
    ("where", "what"), [(socket, "gethostname"), (process, "boot_id"), (process, "pid_namespace")], ids=lambda word: str(word)[:12]
)  # fmt: skip
def test_the_same_folder_on_another_host_boot_or_container_gives_another_name(
    where: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = record.kind_name("dev", STATE)
    monkeypatch.setattr(where, what, lambda: "another")

    assert record.kind_name("dev", STATE) != ours
    assert not record.made_from_here(ours, STATE)


def test_a_cluster_was_made_from_here_if_its_name_comes_from_the_folder() -> None:
    name = record.kind_name("dev", STATE)

    assert record.made_from_here(name, STATE)
    assert not record.made_from_here(name, Path("/state/other/cluster"))
    assert not record.made_from_here(name.replace("dratb-", "mine-"), STATE)


def test_the_longest_node_name_is_a_valid_host_name() -> None:
    name = record.kind_name("n" * 32, STATE)

    assert all(len(f"{name}-{node}") <= 63 for node in ("control-plane", "worker64"))


def test_a_saved_cluster_is_loaded_with_its_engine(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    cluster = saved(tmp_path, DOCKER_HOST="unix:///mine")

    assert record.load("dev", tmp_path) == cluster


def test_an_empty_folder_has_no_cluster(tmp_path: Path) -> None:
    assert record.load("dev", tmp_path) is None


def test_loading_a_cluster_of_another_engine_is_an_error(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    saved(tmp_path)
    fake_engine("info*) echo ENGINE-2;;")

    with pytest.raises(TestbedError, match="has the ID ENGINE-2, but ENGINE-1 created them") as told:
        record.load("dev", tmp_path)
    assert str(tmp_path) in told.value.hint


def test_a_cluster_can_be_loaded_while_its_engine_does_not_answer(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    saved(tmp_path)
    fake_engine("*) exit 1;;")

    assert record.load("dev", tmp_path) is not None


def test_a_cluster_can_be_loaded_while_its_engines_program_is_missing(
    fake_engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    saved(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")

    assert record.load("dev", tmp_path) is not None


def test_a_cluster_of_an_engine_without_an_id_can_be_saved_and_loaded(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) exit 1;;")
    saved(tmp_path)

    assert json.loads((tmp_path / "kind.json").read_text())["id"] == ""
    fake_engine("info*) echo ENGINE-2;;")
    assert record.load("dev", tmp_path) is not None
