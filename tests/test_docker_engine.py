"""ci/docker-engine without an engine: its words, an engine that answers already, and what counts as a trace of dockerd."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from testbed.process import Completed, run

CI = Path(__file__).parents[1] / "ci"


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(CI)
    return importlib.import_module("docker_traces")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "engine"


def engine(tmp_path: Path, *words: str, answers: bool = True) -> Completed:
    """The script on a host whose docker client reaches an engine, or reaches none."""
    client = tmp_path / "bin" / "docker"
    client.parent.mkdir(exist_ok=True)
    client.write_text("#!/bin/sh\necho 20.10.24\n" if answers else "#!/bin/sh\nexit 1\n")
    client.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{client.parent}:{os.environ['PATH']}",
        "DRA_TESTBED_DOCKER_ENGINE": str(tmp_path / "engine"),
    }
    return run([sys.executable, CI / "docker-engine", *words], env=env, check=False)


@pytest.mark.parametrize("words", [[], ["begin"], ["with"], ["stop", "--all"], ["start", "now"]], ids=str)
def test_other_words_are_answered_with_how_to_use_it(tmp_path: Path, words: list[str]) -> None:
    done = engine(tmp_path, *words)

    assert done.code == 2
    assert "docker-engine with COMMAND" in done.stderr


def test_an_engine_that_answers_is_not_started_again(tmp_path: Path, folder: Path) -> None:
    done = engine(tmp_path, "start")

    assert (done.code, done.stdout) == (0, "")
    assert "answers already" in done.stderr
    assert not folder.exists()


def test_a_command_uses_the_engine_that_answers_and_its_exit_code_comes_back(tmp_path: Path, folder: Path) -> None:
    done = engine(tmp_path, "with", "sh", "-c", "echo ${DOCKER_HOST-unset}; exit 7")

    assert (done.code, done.stdout) == (7, f"{os.environ.get('DOCKER_HOST', 'unset')}\n")
    assert not folder.exists()


def test_a_command_that_dies_of_a_signal_ends_as_in_a_shell(tmp_path: Path) -> None:
    assert engine(tmp_path, "with", "sh", "-c", "kill -9 $$").code == 137


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = engine(tmp_path, "with", "/no/such/program")

    assert done.code == 127
    assert "/no/such/program" in done.stderr


def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    done = engine(tmp_path, "with", "sh", "-c", 'trap "exit 9" TERM; kill -TERM $PPID; while :; do :; done')

    assert done.code == 9


def test_status_names_the_engine_that_answers(tmp_path: Path) -> None:
    done = engine(tmp_path, "status")

    assert (done.code, done.stdout) == (0, "an engine that is not ours answers: 20.10.24\n")


def test_status_says_that_none_answers(tmp_path: Path) -> None:
    done = engine(tmp_path, "status", answers=False)

    assert done.code == 1
    assert "no engine answers" in done.stdout


def test_a_second_stop_finds_nothing_and_is_fine(tmp_path: Path, folder: Path) -> None:
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
def test_rules_of_dockerd_are_known(traces: ModuleType, rule: str) -> None:
    assert traces.is_dockers(rule, {"docker0", "br-743fd2630c8a"})


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
def test_rules_of_others_are_left_alone(traces: ModuleType, rule: str) -> None:
    assert not traces.is_dockers(rule, {"docker0", "br-743fd2630c8a"})


def test_a_folder_that_holds_something_is_kept(traces: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()

    traces.remove_empty(tmp_path / "a")

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
