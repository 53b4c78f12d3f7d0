"""The container engine: which one, what it says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers.kind import engine
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")


def test_kinds_own_choice_is_taken(fake_engine: FakeEngine) -> None:
    fake_engine("", "podman")

    assert engine.chosen({}).program == "podman"
    assert engine.chosen({"KIND_EXPERIMENTAL_PROVIDER": "nerdctl"}).program == "nerdctl"


def test_docker_comes_first(fake_engine: FakeEngine) -> None:
    fake_engine("", "podman")
    fake_engine("", "docker")

    assert engine.chosen({}).program == "docker"


def test_no_engine_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    (problem,) = engine.problems(DOCKER)

    assert problem.fatal
    assert "install Docker" in problem.cure


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("permission denied while trying to connect to the Docker daemon socket", "let this user use docker"),
        ("Cannot connect to the Docker daemon", "start docker"),
    ],
)
def test_an_engine_that_does_not_answer_is_told_from_one_that_may_not_be_used(
    fake_engine: FakeEngine, said: str, cure: str
) -> None:
    fake_engine(f'*) echo "{said}" >&2; exit 1;;')

    (problem,) = engine.problems(DOCKER)

    assert said in problem.what
    assert problem.cure.startswith(cure)


def test_an_engine_that_answers_has_no_problem(fake_engine: FakeEngine) -> None:
    fake_engine("*) echo '{}';;")

    assert engine.problems(DOCKER) == []


def test_node_containers_are_found_with_their_clusters(fake_engine: FakeEngine) -> None:
    asked = fake_engine("ps*) printf 'b-worker b\\na-control-plane a\\n';;")

    assert DOCKER.containers() == {"a-control-plane": "a", "b-worker": "b"}
    assert "--all --filter label=io.x-k8s.kind.cluster" in asked.read_text()


def test_removing_a_cluster_looks_again_until_nothing_is_left(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """The first look finds one node; a second one, which was just being started, shows itself in the second look."""
    left = tmp_path / "left"
    left.write_text("one c\ntwo c\n")
    asked = fake_engine(f"ps*) head -n 1 {left};;\nrm*) sed -i 1d {left};;")

    assert DOCKER.remove("c") == ["one", "two"]
    assert "rm --force --volumes one" in asked.read_text()
    assert left.read_text() == ""


def test_an_engine_that_could_not_remove_a_node_is_asked_again(fake_engine: FakeEngine, tmp_path: Path) -> None:
    left, refused = tmp_path / "left", tmp_path / "refused"
    left.write_text("one c\n")
    busy = (
        f"if [ -e {refused} ]; then : > {left}; else : > {refused}; echo did not receive an exit event >&2; exit 1; fi"
    )
    fake_engine(f"ps*) cat {left};;\nrm*) {busy};;")

    assert DOCKER.remove("c") == ["one"]
    assert left.read_text() == ""


@pytest.mark.parametrize(("said", "version"), [("1", 1), ("2", 2), ("v2", 2), ("", 2)])
def test_the_version_of_the_nodes_cgroups_is_the_engines_word(fake_engine: FakeEngine, said: str, version: int) -> None:
    fake_engine(f"info*) echo '{said}';;")

    assert engine.cgroup_version(DOCKER) == version


def test_a_mount_is_found_by_its_place(fake_engine: FakeEngine) -> None:
    fake_engine("inspect*) printf '/var /volumes/x\\n/kind/dra-testbed /state/my testbed/shared\\n';;")

    assert DOCKER.mounted_from("node", "/kind/dra-testbed") == Path("/state/my testbed/shared")
    assert DOCKER.mounted_from("node", "/elsewhere") is None
