"""The container engine: the command line for each program, and the meaning of its output."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.providers.kind import engine
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")
PODMAN = Engine("podman")
LABEL = '"io.x-k8s.kind.cluster"'


def test_node_containers_are_found_with_their_clusters(fake_engine: FakeEngine) -> None:
    asked = fake_engine("ps*) printf 'b-worker b\\na-control-plane a\\n';;")

    assert DOCKER.containers() == {"a-control-plane": "a", "b-worker": "b"}
    assert "--all --filter label=io.x-k8s.kind.cluster" in asked.read_text()


@pytest.mark.parametrize(
    ("program", "version", "shown"),
    [
        ("docker", "", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
        ("nerdctl", "", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
        ("nerdctl.lima", "", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
        ("finch", "", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
        ("podman", "4.9.5", f"{{{{.Names}}}} {{{{index .Labels {LABEL}}}}}"),
        ("podman", "5.0.0", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
        ("podman", "6.0.0-dev", f"{{{{.Names}}}} {{{{.Label {LABEL}}}}}"),
    ],
)
def test_each_engine_gets_the_label_template_that_it_knows(
    fake_engine: FakeEngine, program: str, version: str, shown: str
) -> None:
    asked = fake_engine(f"--version) echo podman version {version};;\nps*) echo a-worker a;;", program)

    assert Engine(program).containers() == {"a-worker": "a"}
    last = asked.read_text().splitlines()[-1]
    assert last == f"ps --all --filter label=io.x-k8s.kind.cluster --format {shown}"


def test_an_engine_is_run_with_its_own_variables_and_no_others(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_engine('*) echo "$DOCKER_HOST $CONTAINER_HOST $DOCKER_CONTEXT $KIND_EXPERIMENTAL_PROVIDER $OTHER";;')
    for name, value in (("DOCKER_HOST", "unix:///now"), ("DOCKER_CONTEXT", "now"), ("OTHER", "kept"),
                        ("KIND_EXPERIMENTAL_PROVIDER", "podman")):  # fmt: skip
        monkeypatch.setenv(name, value)
    then = Engine("docker", {"DOCKER_HOST": "unix:///then", "CONTAINER_HOST": "unix:///c"})

    assert then.run("anything").stdout.split() == ["unix:///then", "unix:///c", "docker", "kept"]
    assert os.environ["DOCKER_HOST"] == "unix:///now"


def test_the_volumes_of_podmans_nodes_are_removed_and_no_others(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """Include the volume of a node that was never created: kind creates the volume first."""
    left, volumes = tmp_path / "left", tmp_path / "volumes"
    left.write_text("c-worker c\n")
    labels = ({"c-worker": "true"}, {"c-control-plane": "true"}, {"c-more-worker": "true"}, {"x": "c-worker"}, None)
    volumes.write_text(json.dumps([{"Name": f"v{number}", "Labels": each} for number, each in enumerate(labels)]))
    asked = fake_engine(
        f"--version) echo podman version 5.1.0;;\nps*) cat {left};;\nrm*) : > {left};;\nvolume?ls*) cat {volumes};;", "podman"
    )  # fmt: skip

    assert PODMAN.remove("c") == ["c-worker"]
    assert asked.read_text().splitlines()[-1] == "volume rm --force v0 v1"


@pytest.mark.parametrize("answer", ["", "null", "[]"])
def test_without_volumes_podman_removes_none(fake_engine: FakeEngine, answer: str) -> None:
    asked = fake_engine(f"--version) echo podman version 5.1.0;;\nvolume?ls*) echo '{answer}';;", "podman")

    assert PODMAN.remove("c") == []
    assert "volume rm" not in asked.read_text()


def test_docker_removes_volumes_with_containers(fake_engine: FakeEngine) -> None:
    asked = fake_engine("*) ;;")

    DOCKER.remove("c")

    assert "volume ls" not in asked.read_text()


def test_removing_a_cluster_is_repeated_until_nothing_is_left(fake_engine: FakeEngine, tmp_path: Path) -> None:
    """The first listing has one node; the second one has another, which was just being started."""
    left = tmp_path / "left"
    left.write_text("one c\ntwo c\n")
    asked = fake_engine(f"ps*) head -n 1 {left};;\nrm*) sed -i 1d {left};;")

    assert DOCKER.remove("c") == ["one", "two"]
    assert "rm --force --volumes one" in asked.read_text()
    assert left.read_text() == ""


def test_a_failed_removal_of_a_node_is_retried(fake_engine: FakeEngine, tmp_path: Path) -> None:
    left, refused = tmp_path / "left", tmp_path / "refused"
    left.write_text("one c\n")
    busy = (
        f"if [ -e {refused} ]; then : > {left}; else : > {refused}; echo did not receive an exit event >&2; exit 1; fi"
    )
    fake_engine(f"ps*) cat {left};;\nrm*) {busy};;")

    assert DOCKER.remove("c") == ["one"]
    assert left.read_text() == ""


@pytest.mark.parametrize(("said", "version"), [("1", 1), ("2", 2), ("v2", 2), ("", 2)])
def test_the_version_of_the_nodes_cgroups_comes_from_the_engine(
    fake_engine: FakeEngine, said: str, version: int
) -> None:
    fake_engine(f"info*) echo '{said}';;")

    assert engine.cgroup_version(DOCKER) == version


@pytest.mark.parametrize(
    ("engine_", "fact", "shown"),
    [(DOCKER, "id", "{{.ID}}"), (Engine("nerdctl"), "host", "{{.Name}}"), (PODMAN, "id", "{{.Store.GraphRoot}}")],
)
def test_each_engine_gets_its_own_info_templates(
    fake_engine: FakeEngine, engine_: Engine, fact: str, shown: str
) -> None:
    asked = fake_engine("info*) echo it;;", engine_.program)

    assert engine_.info(fact) == "it"
    assert asked.read_text() == f"info --format {shown}\n"


def test_the_output_of_a_failed_info_is_ignored(fake_engine: FakeEngine) -> None:
    fake_engine("*) echo not me; exit 1;;")

    assert DOCKER.info("id") == ""


def test_a_mount_is_found_by_its_target(fake_engine: FakeEngine) -> None:
    fake_engine("inspect*) printf '/var /volumes/x\\n/kind/dra-testbed /state/my testbed/shared\\n';;")

    assert DOCKER.mounted_from("node", "/kind/dra-testbed") == Path("/state/my testbed/shared")
    assert DOCKER.mounted_from("node", "/elsewhere") is None
