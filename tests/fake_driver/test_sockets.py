import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.sockets import Sockets

DRIVER = "gpu.example"
MINE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def bind() -> Iterator[object]:
    """Make a socket file; alive as long as the test, or left over by a dead process."""
    alive: list[socket.socket] = []

    def bound(path: Path, *, dead: bool = False) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        if dead:
            listener.close()
        else:
            alive.append(listener)
        return path

    yield bound
    for listener in alive:
        listener.close()


def test_a_pod_has_sockets_of_its_own(folder: Path) -> None:
    one = Sockets(DRIVER, MINE, folder / "reg", folder / "data")
    assert one.registration == folder / f"reg/gpu.example-{MINE}-reg.sock"
    assert one.service == folder / f"data/dra-{MINE}.sock"


def test_a_plain_process_has_the_names_without_a_uid(folder: Path) -> None:
    one = Sockets(DRIVER, "", folder / "reg", folder / "data")
    assert (one.registration.name, one.service.name) == ("gpu.example-reg.sock", "dra.sock")


@pytest.mark.parametrize("too_many", [0, 1])
def test_a_path_has_at_most_107_bytes(too_many: int) -> None:
    registry = Path("/" + "r" * (107 - len("/" + "/gpu.example-reg.sock") + too_many))
    if not too_many:
        assert len(str(Sockets(DRIVER, "", registry, Path("/d")).registration)) == 107
        return
    with pytest.raises(ConfigurationError, match="108 bytes, but Linux allows 107; use a shorter driver name"):
        Sockets(DRIVER, "", registry, Path("/d"))


def test_the_longest_driver_name_in_a_pod_fits_the_kubelets_own_folders() -> None:
    folders = Path("/var/lib/kubelet/plugins_registry"), Path("/var/lib/kubelet/plugins") / ("d" * 27)
    assert len(str(Sockets("d" * 27, MINE, *folders).registration)) == 107


def test_dead_sockets_go_and_living_ones_of_a_sibling_stay(folder: Path, bind: object) -> None:
    assert callable(bind)
    gone = [
        bind(folder / f"reg/gpu.example-{MINE}-reg.sock", dead=True),
        bind(folder / f"reg/gpu.example-{OTHER}-reg.sock", dead=True),
        bind(folder / f"data/dra-{OTHER}.sock", dead=True),
        bind(folder / "data/dra.sock", dead=True),
    ]
    stay = [
        bind(folder / "reg/gpu.example-reg.sock"),
        bind(folder / "reg/other.example-reg.sock", dead=True),
        bind(folder / f"reg/gpu.example-2-{OTHER}-reg.sock", dead=True),
        bind(folder / "data/own.sock", dead=True),
    ]
    Sockets(DRIVER, MINE, folder / "reg", folder / "data").make_room()
    assert [path.name for path in gone if path.exists()] == []
    assert [path.name for path in stay if not path.exists()] == []


def test_a_file_that_is_no_socket_is_not_touched(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data/dra.sock").write_text("mine")
    Sockets(DRIVER, "", folder / "reg", folder / "data").make_room()
    assert (folder / "data/dra.sock").read_text() == "mine"


def test_the_data_folder_is_closed_to_others(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o755)
    Sockets(DRIVER, "", folder / "reg", folder / "data").make_room()
    assert (folder / "data").stat().st_mode & 0o777 == 0o700
