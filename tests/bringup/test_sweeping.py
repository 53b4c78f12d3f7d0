"""Whose objects in a cluster are swept: those that nobody will miss."""

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
def test_a_state_folder_that_we_may_not_read_is_not_taken_for_an_empty_one(
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
    monkeypatch.setattr(Path, "is_file", lambda _: False)  # as Python 3.14 has it, where what is refused is not there
    assert run(command.split()) == 3
    assert f"the state folder {folder} belongs to {folders.owner_of(folder)}" in capsys.readouterr().err


def _left(owner: Owner | None, identity: str = "aaaa") -> str:
    return sweeping._in_use(identity, owner)


def test_a_testbed_that_is_up_on_this_host_is_in_use() -> None:
    state.write(RECORD)
    assert _left(RECORD.owner) == "it is up"
    assert _left(None) == "it is up"


def test_a_testbed_whose_maker_was_killed_is_not() -> None:
    record = dataclasses.replace(RECORD, phase=Phase.CREATING)
    state.write(record)
    assert _left(record.owner) == ""


def test_a_testbed_without_a_record_is_not_unless_its_process_is_at_work() -> None:
    assert _left(RECORD.owner) == ""
    alive = dataclasses.replace(RECORD.owner, started=MINE.started)
    assert _left(alive) == f"process {MINE.pid} is at work"


def test_a_testbed_that_is_up_in_another_state_folder_of_this_host_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))
    assert _left(owner) == "it is up"
    assert _left(dataclasses.replace(owner, identity="bbbb"), "bbbb") == ""


@pytest.mark.parametrize("content", ["{}", "another version's"])
def test_a_testbed_whose_record_cannot_be_read_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    Path(owner.folder, "testbed.json").write_text(content)
    assert _left(owner) == f"its record in {owner.folder} cannot be read"
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))
    assert _left(owner) == f"its record in {owner.folder} cannot be read"


def test_another_users_testbed_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state.write(RECORD)
    owner = RECORD.owner
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "other"))

    read = Path.read_text

    def refuse(path: Path, **how: Any) -> str:
        if path.name == "testbed.json":
            raise PermissionError(13, "Permission denied")
        return read(path, **how)

    monkeypatch.setattr(Path, "read_text", refuse)  # root may read everything
    assert _left(owner) == f"its record in {owner.folder} cannot be read"


@pytest.mark.parametrize("change", [{"boot": "other"}, {"pid_space": "pid:[1]"}])
def test_what_was_made_elsewhere_is_nobodys_to_judge(change: dict[str, Any]) -> None:
    elsewhere = dataclasses.replace(RECORD.owner, **change)
    assert "made elsewhere" in _left(elsewhere)
    state.write(dataclasses.replace(RECORD, phase=Phase.CREATING))
    assert _left(elsewhere) == "", "this host's own record knows better"


def test_what_nobody_signed_is_left() -> None:
    assert "nothing says who made them" in _left(None)


def _object(owner: Owner, name: str) -> Any:
    return owner.mark({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})


@pytest.mark.parametrize(("everything", "removed"), [(False, ["dead"]), (True, ["dead", "far"])])
def test_a_cluster_is_swept_testbed_by_testbed(
    everything: bool, removed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = dataclasses.replace(RECORD.owner, identity="bbbb", boot="other")
    objects = (_object(RECORD.owner, "dead"), _object(far, "far"))
    monkeypatch.setattr(sweeping, "find_labelled", lambda _kube, _selector: LabelledObjects(objects, (SECRETS,)))
    monkeypatch.setattr(removal, "remove", lambda _kube, doomed: [each["metadata"]["name"] for each in doomed])
    with api_server.running() as server:
        file = server.kubeconfig(tmp_path)
        assert sweeping.sweep_cluster(file, None, Silent(), everything=everything) == removed


def test_the_command_finds_nothing_in_a_cluster_without_testbeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: [])  # this host's own remains are not this test's
    with api_server.running() as server:
        assert run(["sweep", "--kubeconfig", str(server.kubeconfig(tmp_path))]) == 0
    said = capsys.readouterr()
    assert "nothing to remove" in said.out
    assert server.writes == []
    assert run(["sweep", "--context", "here"]) == 2


def test_a_provider_that_cannot_sweep_keeps_nobody_from_the_others(
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
    assert "left as it is: what provider kind may have left: command failed" in said


def test_what_was_added_to_objects_of_others_is_taken_back_before_nothing_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(sweeping, "find_labelled", lambda *_: LabelledObjects((_object(RECORD.owner, "dead"),)))
    monkeypatch.setattr(removal, "release", lambda _kube, owner: done.append(owner.manager))
    monkeypatch.setattr(removal, "remove", lambda *_: [*map(done.append, ["removed"])])
    with api_server.running() as server:
        sweeping.sweep_cluster(server.kubeconfig(tmp_path), None, Silent())
    assert done == ["dra-testbed/aaaa", "removed"]
