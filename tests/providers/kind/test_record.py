"""What a kind cluster is called and remembered by: whose it is, and in which engine, for whoever comes back to it."""

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


def remembered(folder: Path, **variables: str) -> KindCluster:
    cluster = KindCluster("dev", folder, "dratb-dev-1", Path("kind"), Engine("docker", variables))
    record.remember(cluster)
    return cluster


def test_testbeds_of_the_same_name_in_other_folders_have_clusters_of_their_own() -> None:
    assert record.kind_name("dev", Path("/a/dev/cluster")) != record.kind_name("dev", Path("/b/dev/cluster"))


@pytest.mark.parametrize(
    ("where", "what"), [(socket, "gethostname"), (process, "boot_id"), (process, "pid_namespace")], ids=lambda word: str(word)[:12]
)  # fmt: skip
def test_the_same_folder_of_another_host_boot_or_container_makes_another_name(
    where: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = record.kind_name("dev", STATE)
    monkeypatch.setattr(where, what, lambda: "another")

    assert record.kind_name("dev", STATE) != ours
    assert not record.made_from_here(ours, STATE)


def test_a_cluster_is_made_from_here_when_its_folder_gave_it_the_name() -> None:
    name = record.kind_name("dev", STATE)

    assert record.made_from_here(name, STATE)
    assert not record.made_from_here(name, Path("/state/other/cluster"))
    assert not record.made_from_here(name.replace("dratb-", "mine-"), STATE)


def test_every_node_of_the_longest_name_has_a_name_that_a_host_may_have() -> None:
    name = record.kind_name("n" * 32, STATE)

    assert all(len(f"{name}-{node}") <= 63 for node in ("control-plane", "worker64"))


def test_what_was_remembered_is_recalled_with_its_engine(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    cluster = remembered(tmp_path, DOCKER_HOST="unix:///mine")

    assert record.recall("dev", tmp_path) == cluster


def test_an_empty_folder_recalls_nothing(tmp_path: Path) -> None:
    assert record.recall("dev", tmp_path) is None


def test_another_engine_in_its_place_is_an_error(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    remembered(tmp_path)
    fake_engine("info*) echo ENGINE-2;;")

    with pytest.raises(TestbedError, match="ENGINE-2, and they were made by ENGINE-1") as told:
        record.recall("dev", tmp_path)
    assert str(tmp_path) in told.value.hint


def test_a_silent_engine_is_for_others_to_complain_about(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    remembered(tmp_path)
    fake_engine("*) exit 1;;")

    assert record.recall("dev", tmp_path) is not None


def test_a_program_that_is_gone_is_for_others_to_complain_about(
    fake_engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine("info*) echo ENGINE-1;;")
    remembered(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")

    assert record.recall("dev", tmp_path) is not None


def test_an_engine_without_an_id_is_remembered_all_the_same(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine("info*) exit 1;;")
    remembered(tmp_path)

    assert json.loads((tmp_path / "kind.json").read_text())["id"] == ""
    fake_engine("info*) echo ENGINE-2;;")
    assert record.recall("dev", tmp_path) is not None
