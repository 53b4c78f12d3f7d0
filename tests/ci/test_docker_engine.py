"""ci/docker/engine without an engine: its subcommands, an engine that already answers, and what dockerd changes on a host."""

from __future__ import annotations

import configparser
import fnmatch
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from testbed.process import Completed, run
from testbed.providers.kind.engine import CHOICE, SELECTING

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "ci/docker"


@pytest.fixture
def host_state(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DOCKER)
    return importlib.import_module("host_state")


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[ModuleType]:
    """ci/docker/dockerd.py with a folder of its own."""
    monkeypatch.syspath_prepend(DOCKER)
    monkeypatch.setenv("DRA_TESTBED_DOCKER_ENGINE", str(folder))
    folder.mkdir()
    sys.modules.pop("dockerd", None)
    yield importlib.import_module("dockerd")
    sys.modules.pop("dockerd", None)


@pytest.fixture
def script(daemon: ModuleType) -> ModuleType:
    """ci/docker/engine as a module."""
    loader = SourceFileLoader("docker_engine", str(DOCKER / "engine"))
    module = module_from_spec(spec_from_loader("docker_engine", loader))  # type: ignore[arg-type] # there is a loader
    loader.exec_module(module)
    return module


@pytest.fixture
def restored(host_state: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the restored host states; nothing is really restored."""
    done: list[str] = []
    monkeypatch.setattr(host_state.HostState, "restore", lambda before: done.append(before.forwarding))
    return done


def record(daemon: ModuleType, host_state: ModuleType, boot: str) -> Any:
    """Save the record of an engine that has ended, and whose PID may belong to another process now."""
    engine = daemon.Engine(os.getpid(), "0", True, host_state.HostState("0", [], [], [], []), boot)
    engine.save()
    return engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "engine"


def engine(tmp_path: Path, *words: str, answers: bool = True) -> Completed:
    """Run the script on a host whose docker client reaches an engine, or none."""
    client = tmp_path / "bin" / "docker"
    client.parent.mkdir(exist_ok=True)
    client.write_text("#!/bin/sh\necho 20.10.24\n" if answers else "#!/bin/sh\nexit 1\n")
    client.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{client.parent}:{os.environ['PATH']}",
        "DRA_TESTBED_DOCKER_ENGINE": str(tmp_path / "engine"),
    }
    return run([sys.executable, DOCKER / "engine", *words], env=env, check=False)


@pytest.mark.parametrize("words", [[], ["begin"], ["with"], ["stop", "--all"], ["start", "now"]], ids=str)
def test_unknown_arguments_print_the_usage(tmp_path: Path, words: list[str]) -> None:
    done = engine(tmp_path, *words)

    assert done.code == 2
    assert "docker/engine with COMMAND" in done.stderr


def test_an_engine_that_answers_is_not_started_again(tmp_path: Path, folder: Path) -> None:
    done = engine(tmp_path, "start")

    assert (done.code, done.stdout) == (0, "")
    assert "answers already" in done.stderr
    assert not folder.exists()


def test_a_command_uses_the_engine_that_answers_and_its_exit_code_is_returned(tmp_path: Path, folder: Path) -> None:
    done = engine(tmp_path, "with", "sh", "-c", "echo ${DOCKER_HOST-unset}; exit 7")

    assert (done.code, done.stdout) == (7, f"{os.environ.get('DOCKER_HOST', 'unset')}\n")
    assert not folder.exists()


def test_a_command_killed_by_a_signal_gives_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    assert engine(tmp_path, "with", "sh", "-c", "kill -9 $$").code == 137


def test_a_missing_command_is_reported(tmp_path: Path) -> None:
    done = engine(tmp_path, "with", "/no/such/program")

    assert done.code == 127
    assert "/no/such/program" in done.stderr


def test_a_signal_is_forwarded_to_the_command(tmp_path: Path) -> None:
    done = engine(tmp_path, "with", "sh", "-c", 'trap "exit 9" TERM; kill -TERM $PPID; while :; do :; done')

    assert done.code == 9


def test_status_names_the_engine_that_answers(tmp_path: Path) -> None:
    done = engine(tmp_path, "status")

    assert (done.code, done.stdout) == (0, "an engine that is not ours answers: 20.10.24\n")


def test_status_exits_with_1_if_no_engine_answers(tmp_path: Path) -> None:
    done = engine(tmp_path, "status", answers=False)

    assert done.code == 1
    assert "no engine answers" in done.stdout


def test_stopping_twice_is_no_error(tmp_path: Path, folder: Path) -> None:
    assert [engine(tmp_path, "stop").code for _ in range(2)] == [0, 0]
    assert engine(tmp_path, "stop", "--purge").code == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    "rule",
    [
        "-t filter -N DOCKER-USER",
        "-t filter -A FORWARD -j DOCKER-ISOLATION-STAGE-1",
        "-t filter -A FORWARD -o br-743fd2630c8a -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "-t nat -A POSTROUTING -s 172.18.0.0/16 ! -o br-743fd2630c8a -j MASQUERADE",
        "-t nat -A POSTROUTING -s 172.18.0.2/32 -d 172.18.0.2/32 -p tcp -m tcp --dport 80 -j MASQUERADE",
    ],
)
def test_rules_of_dockerd_are_recognised(host_state: ModuleType, rule: str) -> None:
    assert host_state.is_dockers(rule, {"docker0", "br-743fd2630c8a"})


@pytest.mark.parametrize(
    "rule",
    [
        "-t nat -N POSTROUTING",
        "-t filter -N MY-DOCKER",
        "-t filter -A FORWARD -o br-0123456789ab -j ACCEPT",
        "-t nat -A POSTROUTING -s 10.0.0.0/8 -o eth0 -j MASQUERADE",
        "-t nat -A POSTROUTING -s 10.0.0.1/32 -d 10.0.0.2/32 -j MASQUERADE",
    ],
)
def test_rules_of_other_programs_are_kept(host_state: ModuleType, rule: str) -> None:
    assert not host_state.is_dockers(rule, {"docker0", "br-743fd2630c8a"})


def test_a_folder_with_a_file_is_kept(host_state: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()

    host_state.remove_empty(tmp_path / "a")

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


def test_changes_of_an_engine_that_ended_in_this_boot_are_reverted(
    daemon: ModuleType, script: ModuleType, host_state: ModuleType, restored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "another_dockerd", lambda: None)
    record(daemon, host_state, daemon.boot_id())

    assert script.stop()
    assert restored == ["0"]
    assert not daemon.RECORD.exists()


@pytest.mark.parametrize("boot", ["another", ""])
def test_after_a_reboot_only_the_record_is_removed(
    daemon: ModuleType, script: ModuleType, host_state: ModuleType, restored: list[str], boot: str
) -> None:
    record(daemon, host_state, boot)

    assert script.stop()
    assert restored == []
    assert not daemon.RECORD.exists()


def test_nothing_is_restored_while_another_dockerd_runs(
    daemon: ModuleType, script: ModuleType, host_state: ModuleType, restored: list[str],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(daemon, "another_dockerd", lambda: 4711)
    record(daemon, host_state, daemon.boot_id())

    assert script.stop()
    assert restored == []
    assert "another dockerd (process 4711) runs" in capsys.readouterr().err


def test_a_process_with_the_same_pid_in_another_boot_is_not_the_engine(
    daemon: ModuleType, host_state: ModuleType
) -> None:
    nothing = host_state.HostState("0", [], [], [], [])
    started = daemon.stat(os.getpid())[19]

    assert daemon.Engine(os.getpid(), started, True, nothing, daemon.boot_id()).alive
    assert not daemon.Engine(os.getpid(), started, True, nothing, "another").alive


@pytest.mark.parametrize(("network", "found"), [("same", True), ("another", False)])
def test_a_dockerd_in_another_network_namespace_is_ignored(
    daemon: ModuleType, monkeypatch: pytest.MonkeyPatch, network: str, found: bool
) -> None:
    ours, real = Path("/proc/self/ns/net").readlink(), Path.readlink
    monkeypatch.setattr(daemon, "processes_named", lambda name: iter([os.getpid()] if name == "dockerd" else []))
    monkeypatch.setattr(
        Path, "readlink", lambda path: Path("net:[1]") if network == "another" and "self" not in path.parts else real(path)
    )  # fmt: skip

    assert daemon.another_dockerd() == (os.getpid() if found else None)
    assert Path("/proc/self/ns/net").readlink() == ours


def test_tox_passes_every_variable_that_selects_an_engine(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        script, "ask", lambda *_, **__: (False, "")
    )  # a client that is too new to negotiate the API version
    monkeypatch.setattr(script, "version", lambda: {"ApiVersion": "1.41"})
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    passed = tox["testenv"]["pass_env"].split()
    variables = script.environment()

    assert variables.keys() == {"DOCKER_HOST", "DOCKER_API_VERSION"}
    wanted = (*variables, *SELECTING, CHOICE, "KUBECONFIG")
    assert [name for name in wanted if not any(fnmatch.fnmatch(name, each) for each in passed)] == []
