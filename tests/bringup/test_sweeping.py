"""Which testbeds' objects in a cluster are swept: those of abandoned testbeds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from testbed import folders, process
from testbed.bringup import removal, state, sweeping
from testbed.bringup.state import Phase, Record
from testbed.cli.main import run
from testbed.errors import CommandFailed
from testbed.kube.client import Resource
from testbed.kube.discovery import LabelledObjects
from testbed.kube.ownership import Owner
from testbed.progress import Progress, Silent
from tests.fakes import api_server

MINE = state.this_process()
DEAD = MINE.started + 1
SECRETS = Resource("v1", "secrets", "Secret", namespaced=True)
RECORD = Record(
    "dev", "existing", Phase.READY, MINE.pid, DEAD, process.pid_namespace(), ephemeral=False, config={}, identity="aaaa"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["status", "sweep", "down --all"])
def test_an_unreadable_state_folder_is_not_treated_as_empty(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    def refuse(path: Path, **_: object) -> Any:
        if path.name == "testbed.json":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    state.write(RECORD)
    real = Path.stat
    monkeypatch.setattr(sweeping, "PROVIDERS", {})
    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(
        Path, "is_file", lambda _: False
    )  # as in Python 3.14, for which an inaccessible file does not exist
    assert run(command.split()) == 3
    assert f"the state folder {folder} belongs to {folders.owner_of(folder)}" in capsys.readouterr().err


def _why_kept(owner: Owner | None, identity: str = "aaaa") -> str:
    return sweeping._why_kept(identity, [owner] if owner else [])


def test_a_testbed_that_is_up_on_this_host_is_in_use() -> None:
    state.write(RECORD)
    assert _why_kept(RECORD.owner) == "it is up"
    assert _why_kept(None) == "it is up"


def test_a_testbed_whose_maker_was_killed_is_not_in_use() -> None:
    record = dataclasses.replace(RECORD, phase=Phase.CREATING)
    state.write(record)
    assert _why_kept(record.owner) == ""


def test_a_testbed_without_a_record_is_in_use_only_while_its_process_runs() -> None:
    assert _why_kept(RECORD.owner) == ""
    alive = dataclasses.replace(RECORD.owner, started=MINE.started)
    assert _why_kept(alive) == f"process {MINE.pid} still uses it"


def test_a_testbed_that_is_up_in_another_state_folder_of_this_host_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))
    assert _why_kept(owner) == "it is up"
    assert _why_kept(dataclasses.replace(owner, identity="bbbb"), "bbbb") == ""


@pytest.mark.parametrize("content", ["{}", "another version's"])
def test_a_testbed_whose_record_cannot_be_read_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    Path(owner.folder, "testbed.json").write_text(content)
    assert _why_kept(owner) == f"its record in {owner.folder} cannot be read"
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))
    assert _why_kept(owner) == f"its record in {owner.folder} cannot be read"


def test_a_testbed_of_another_user_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))

    read = Path.read_text

    def refuse(path: Path, **how: Any) -> str:
        if path.name == "testbed.json":
            raise PermissionError(13, "Permission denied")
        return read(path, **how)

    monkeypatch.setattr(Path, "read_text", refuse)  # root can read every file
    assert _why_kept(owner) == f"its record in {owner.folder} cannot be read"


@pytest.mark.parametrize("change", [{"boot": "other"}, {"pid_space": "pid:[1]"}])
def test_a_testbed_of_another_host_or_boot_is_kept(change: dict[str, Any]) -> None:
    elsewhere = dataclasses.replace(RECORD.owner, **change)
    assert "made on another host" in _why_kept(elsewhere)
    state.write(dataclasses.replace(RECORD, phase=Phase.CREATING))
    assert _why_kept(elsewhere) == "", "the record on this host decides"


def test_objects_that_do_not_name_their_testbed_are_kept() -> None:
    assert "they do not name their testbed" in _why_kept(None)


def _object(owner: Owner, name: str) -> Any:
    return owner.mark({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})


@pytest.mark.parametrize(("everything", "removed"), [(False, ["dead"]), (True, ["dead", "far"])])
def test_a_cluster_is_swept_testbed_by_testbed(
    everything: bool, removed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = dataclasses.replace(RECORD.owner, identity="bbbb", boot="other")
    objects = (_object(RECORD.owner, "dead"), _object(far, "far"))
    monkeypatch.setattr(sweeping, "find_labelled", lambda _kube, _selector: LabelledObjects(objects, (SECRETS,)))
    monkeypatch.setattr(removal, "remove", lambda _kube, doomed, *_: [each["metadata"]["name"] for each in doomed])
    with api_server.running() as server:
        file = server.kubeconfig(tmp_path)
        assert sweeping.sweep_cluster(file, None, Silent(), everything=everything) == removed


def test_the_command_finds_nothing_in_a_cluster_without_testbeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: [])  # this test must not sweep the host
    with api_server.running() as server:
        assert run(["sweep", "--kubeconfig", str(server.kubeconfig(tmp_path))]) == 0
    said = capsys.readouterr()
    assert "nothing to remove" in said.out
    assert server.writes == []
    assert run(["sweep", "--context", "here"]) == 2


def test_if_one_provider_cannot_sweep_the_others_still_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sweeps:
        def __init__(self, name: str) -> None:
            self.name = name

        def sweep(self, _in_use: Any) -> list[str]:
            if self.name == "kind":
                raise CommandFailed(["docker", "ps"], "exit 1", "cannot connect")
            return [f"of {self.name}"]

    monkeypatch.setattr(sweeping, "provider", Sweeps)
    assert sweeping.sweep(Progress()) == ["of local", "of existing"]
    said = " ".join(capsys.readouterr().err.split())
    assert "not swept: provider kind: command failed" in said


def test_changes_to_shared_objects_are_undone_before_the_testbeds_objects_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(sweeping, "find_labelled", lambda *_: LabelledObjects((_object(RECORD.owner, "dead"),)))
    monkeypatch.setattr(removal, "release", lambda _kube, owner: done.append(owner.manager))
    monkeypatch.setattr(removal, "remove", lambda *_: [*map(done.append, ["removed"])])
    with api_server.running() as server:
        sweeping.sweep_cluster(server.kubeconfig(tmp_path), None, Silent())
    assert done == ["dra-testbed/aaaa", "removed"]


CLUSTER_WIDE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "of-the-testbed"}}


def _sweep(folder: Path, monkeypatch: pytest.MonkeyPatch, *objects: Any) -> list[tuple[list[str], set[str]]]:
    """Sweep a cluster with these objects; return the names and the drivers of each removal."""
    done: list[tuple[list[str], set[str]]] = []

    def remove(_kube: object, doomed: list[Any], drivers: set[str], _progress: object) -> list[str]:
        done.append(([each["metadata"]["name"] for each in doomed], drivers))
        return []

    monkeypatch.setattr(sweeping, "find_labelled", lambda *_: LabelledObjects(objects))
    monkeypatch.setattr(removal, "release", lambda *_: None)
    monkeypatch.setattr(removal, "remove", remove)
    with api_server.running() as server:
        sweeping.sweep_cluster(server.kubeconfig(folder), None, Silent())
    return done


def test_an_owner_that_a_tenant_names_does_not_decide_about_cluster_wide_objects(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = dataclasses.replace(RECORD.owner, boot="other")
    forged = _object(RECORD.owner, "in-the-namespace-of-a-tenant")
    assert _sweep(folder, monkeypatch, forged, far.mark(CLUSTER_WIDE)) == []


def test_a_sweep_deletes_slices_only_of_drivers_in_the_record_of_that_testbed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = dataclasses.replace(RECORD, phase=Phase.CREATING, drivers=("gpu.example",))
    state.write(abandoned)
    other = dataclasses.replace(RECORD.owner, identity="bbbb")
    done = _sweep(folder, monkeypatch, abandoned.owner.mark(CLUSTER_WIDE), _object(other, "unrecorded"))
    assert done == [(["of-the-testbed"], {"gpu.example"}), (["unrecorded"], set())]
