"""An engine outside of our container is refused before it creates anything, if it cannot serve us."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.kind import engine_location
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")
OUR_NETWORK = Path("/proc/self/ns/net")


def engine_at(host: str, keeps: Path | str = "/", container: str = "") -> str:
    return f"*.Name*) echo '{host}';;\n*DockerRootDir*) echo {keeps};;\nrun*) {container};;\n*) ;;"


def that_sees(folder: Path, boot: str = "", network: str = "") -> str:
    """Return a container that prints the file in the folder, on this kernel and in this network."""
    own = OUR_NETWORK.readlink()
    return f"cat {folder}/seen; echo '{boot or process.boot_id()}'; echo '{network or own}'"


@pytest.mark.parametrize("host", [socket.gethostname(), "", "docker-desktop"])
def test_no_container_is_started_for_an_engine_on_this_host_or_docker_desktop(
    fake_engine: FakeEngine, tmp_path: Path, host: str
) -> None:
    asked = fake_engine(engine_at(host, tmp_path))

    engine_location.refuse(DOCKER, tmp_path, "node:1")

    assert "run" not in asked.read_text()


@pytest.mark.parametrize(
    "said",
    [
        'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /x',
        "Error: statfs /x: no such file or directory",
        "cat: /look/seen: No such file or directory",  # a folder of that name exists by chance
    ],
)
def test_an_engine_that_cannot_mount_our_folders_is_refused(fake_engine: FakeEngine, tmp_path: Path, said: str) -> None:
    asked = fake_engine(engine_at("the-host", container=f'echo "{said}" >&2; exit 125'.replace('"bind"', "bind")))

    with pytest.raises(TestbedError, match=f"outside this container: nodes cannot mount {tmp_path}") as told:
        engine_location.refuse(DOCKER, tmp_path, "node:1")

    assert "DRA_TESTBED_STATE" in told.value.hint
    assert "--network host" in told.value.hint
    (ran,) = [line for line in asked.read_text().splitlines() if line.startswith("run")]
    assert f"--mount type=bind,source={tmp_path},target=/look,readonly" in ran
    assert "--volume" not in ran
    assert list(tmp_path.glob("seen")) == []


def test_an_engine_with_our_host_name_and_another_storage_folder_is_checked(
    fake_engine: FakeEngine, tmp_path: Path
) -> None:
    nowhere = "echo 'bind source path does not exist' >&2; exit 125"
    fake_engine(engine_at(socket.gethostname(), tmp_path / "not-here", nowhere))

    with pytest.raises(TestbedError, match="outside this container"):
        engine_location.refuse(DOCKER, tmp_path, "node:1")


def test_a_shared_folder_is_not_enough_without_the_hosts_network(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine(engine_at("the-host", container=that_sees(tmp_path, network="net:[1]")))

    with pytest.raises(TestbedError, match=r"serve on the 127\.0\.0\.1 of that host"):
        engine_location.refuse(DOCKER, tmp_path, "node:1")


@pytest.mark.parametrize("network", ["", "net:[1]"])
def test_an_engine_in_a_virtual_machine_that_shares_folders_passes(
    fake_engine: FakeEngine, tmp_path: Path, network: str
) -> None:
    fake_engine(engine_at("colima", container=that_sees(tmp_path, boot="another-boot", network=network)))

    engine_location.refuse(DOCKER, tmp_path, "node:1")


def test_a_container_with_shared_folder_and_network_passes(fake_engine: FakeEngine, tmp_path: Path) -> None:
    fake_engine(engine_at("the-host", container=that_sees(tmp_path)))

    engine_location.refuse(DOCKER, tmp_path, "node:1")


def test_a_rootless_engine_passes_although_its_network_differs(fake_engine: FakeEngine, tmp_path: Path) -> None:
    asks = engine_at("renamed", container=that_sees(tmp_path, network="net:[1]"))
    fake_engine(f"*SecurityOptions*) echo '[name=seccomp name=rootless]';;\n{asks}")

    engine_location.refuse(DOCKER, tmp_path, "node:1")


@pytest.mark.parametrize("said", ["cat: /look/seen: Permission denied", "cannot share the host's network namespace"])
def test_an_inconclusive_check_passes(fake_engine: FakeEngine, tmp_path: Path, said: str) -> None:
    fake_engine(engine_at("the-host", container=f'echo "{said}" >&2; exit 1'))

    engine_location.refuse(DOCKER, tmp_path, "node:1")
