"""The engine is the one that kind would choose, and its problems are reported before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers.kind import engine_choice
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")


def calls_itself(words: str) -> str:
    return f"-v) echo {words} version 20.10.5;;"


@pytest.mark.parametrize("name", ["docker", "nerdctl", "nerdctl.lima", "finch", "podman"])
def test_the_engine_that_kinds_variable_names_is_chosen(fake_engine: FakeEngine, name: str) -> None:
    fake_engine(calls_itself("Docker"))

    assert engine_choice.choose({"KIND_EXPERIMENTAL_PROVIDER": name}).program == name


def test_an_unknown_value_of_kinds_variable_is_ignored(fake_engine: FakeEngine) -> None:
    fake_engine(calls_itself("podman"), "podman")

    assert engine_choice.choose({"KIND_EXPERIMENTAL_PROVIDER": "rkt"}).program == "podman"


def test_docker_comes_first_then_nerdctl_then_finch(fake_engine: FakeEngine) -> None:
    for program, words in (("podman", "podman"), ("finch", "finch"), ("nerdctl", "nerdctl"), ("docker", "Docker")):
        fake_engine(calls_itself(words), program)
        assert engine_choice.choose({}).program == program


def test_a_docker_program_of_podman_is_podman(fake_engine: FakeEngine) -> None:
    fake_engine(calls_itself("podman"), "docker")
    fake_engine(calls_itself("podman"), "podman")

    assert engine_choice.choose({}).program == "podman"


def test_a_program_with_an_unknown_version_line_is_skipped(fake_engine: FakeEngine) -> None:
    fake_engine("*) echo Docker version 1; echo and more;;", "docker")
    fake_engine("*) exit 1;;", "nerdctl")
    fake_engine(calls_itself("podman"), "podman")

    assert engine_choice.choose({}).program == "podman"


def test_the_variables_that_select_the_engine_are_recorded(fake_engine: FakeEngine) -> None:
    fake_engine(calls_itself("Docker"))
    given = {"DOCKER_HOST": "unix:///mine", "DOCKER_CONTEXT": "", "HOME": "/root"}

    assert engine_choice.choose(given) == Engine("docker", {"DOCKER_HOST": "unix:///mine"})


def test_the_problem_of_a_missing_engine_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    (problem,) = engine_choice.problems(engine_choice.choose({}))

    assert problem.fatal
    assert "install Docker" in problem.cure


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("permission denied while trying to connect to the Docker daemon socket", "let this user use docker"),
        ("Cannot connect to the Docker daemon", "start docker"),
    ],
)
def test_an_engine_that_does_not_answer_and_one_without_permission_are_different_problems(
    fake_engine: FakeEngine, said: str, cure: str
) -> None:
    fake_engine(f'*) echo "{said}" >&2; exit 1;;')

    (problem,) = engine_choice.problems(DOCKER)

    assert said in problem.what
    assert problem.cure.startswith(cure)


@pytest.mark.parametrize("endpoint", ["unix:///var/run/docker.sock", ""])
def test_an_engine_of_this_host_that_answers_has_no_problem(fake_engine: FakeEngine, endpoint: str) -> None:
    fake_engine(f"context*) echo {endpoint};;\n*) echo '{{}}';;")

    assert engine_choice.problems(DOCKER) == []


@pytest.mark.parametrize("endpoint", ["tcp://docker:2375", "ssh://me@there", "http://there:80"])
def test_an_engine_of_another_host_is_refused_without_waiting_for_it(fake_engine: FakeEngine, endpoint: str) -> None:
    asked = fake_engine(f"context*) echo {endpoint};;")

    (problem,) = engine_choice.problems(DOCKER)

    assert problem.fatal
    assert f"is on another host, {endpoint}:" in problem.what
    assert "DOCKER_HOST" in problem.cure
    assert asked.read_text() == "context inspect --format {{.Endpoints.docker.Host}}\n"


def test_the_endpoint_of_a_client_without_contexts_is_its_variable(fake_engine: FakeEngine) -> None:
    fake_engine("context*) exit 1;;\n*) echo '{}';;")

    assert engine_choice.problems(Engine("docker", {"DOCKER_HOST": "tcp://there:1"}))
    assert engine_choice.problems(Engine("docker", {"DOCKER_HOST": "unix:///here"})) == []


def test_the_endpoint_of_podman_is_its_own_variable(fake_engine: FakeEngine) -> None:
    fake_engine("*) echo '{}';;", "podman")

    assert engine_choice.problems(Engine("podman", {"CONTAINER_HOST": "ssh://there"}))
    assert (
        engine_choice.problems(Engine("podman", {"CONTAINER_HOST": "unix:///here", "DOCKER_HOST": "tcp://there:1"}))
        == []
    )
