import base64
import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.kubelet.socket_paths import SocketPaths

DRIVER = "gpu.example"
MINE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def bind() -> Iterator[object]:
    """Create a socket file with a process that listens, or a stale one."""
    alive: list[socket.socket] = []

    def bound(path: Path, *, is_stale: bool = False) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        if is_stale:
            listener.close()
        else:
            alive.append(listener)
        return path

    yield bound
    for listener in alive:
        listener.close()


def test_the_sockets_of_a_pod_have_its_uid(folder: Path) -> None:
    one = SocketPaths(DRIVER, MINE, folder / "reg", folder / "data")
    assert one.registration == folder / f"reg/gpu.example-{MINE}-reg.sock"
    assert one.service == folder / f"data/dra-{MINE}.sock"


def test_the_sockets_of_a_plain_process_have_no_uid(folder: Path) -> None:
    one = SocketPaths(DRIVER, "", folder / "reg", folder / "data")
    assert (one.registration.name, one.service.name) == ("gpu.example-reg.sock", "dra.sock")


REGISTRY, PLUGINS = Path("/var/lib/kubelet/plugins_registry"), Path("/var/lib/kubelet/plugins")


def in_the_kubelets_folders(driver: str, uid: str = MINE) -> SocketPaths:
    return SocketPaths(driver, uid, REGISTRY, PLUGINS / driver)


def test_a_driver_name_of_27_letters_is_not_shortened() -> None:
    name = in_the_kubelets_folders("d" * 27).registration.name
    assert name == f"{'d' * 27}-{MINE}-reg.sock"
    assert len(str(REGISTRY / name)) == 107


def test_longer_names_are_shortened_as_in_the_kubernetes_library() -> None:
    uid = base64.urlsafe_b64encode(hashlib.sha256(MINE.encode()).digest()[:8]).decode().rstrip("=")
    both = base64.urlsafe_b64encode(hashlib.sha256(f"{'d' * 63}\0{MINE}".encode()).digest()[:16]).decode().rstrip("=")
    assert in_the_kubelets_folders("d" * 28).registration.name == f"{'d' * 28}-{uid}-reg.sock"
    assert in_the_kubelets_folders("d" * 63).registration.name == f"dra-{both}-reg.sock"
    assert in_the_kubelets_folders("d" * 63).service.name == f"{uid}.sock"


@pytest.mark.parametrize("length", range(1, 64))
@pytest.mark.parametrize("uid", [MINE, ""])
def test_all_drivers_and_pods_have_unique_short_paths(length: int, uid: str) -> None:
    mine = in_the_kubelets_folders("d" * length, uid)
    others = [in_the_kubelets_folders("e" * length, uid), in_the_kubelets_folders("d" * length, OTHER)]
    assert max(len(str(path)) for path in (mine.registration, mine.service)) <= 107
    assert mine.registration not in {other.registration for other in others}
    assert mine.service not in {other.service for other in others}


def test_a_folder_whose_path_is_too_long_is_named() -> None:
    with pytest.raises(ConfigurationError, match="107; use a shorter folder"):
        SocketPaths(DRIVER, MINE, Path("/" + "r" * 90), Path("/d"))


@pytest.mark.parametrize("length", [40, 63])
def test_stale_sockets_with_short_names_are_removed(folder: Path, bind: object, length: int) -> None:
    assert callable(bind)
    registry, data = folder / ("r" * 17), folder / ("p" * 7 + "d" * length)
    dead, mine = (SocketPaths("d" * length, uid, registry, data) for uid in (OTHER, MINE))
    assert OTHER not in str(dead.registration)
    dead.prepare_folders()
    stay = bind(registry / "dra-0123456789012345678901-reg.sock", is_stale=True)
    names = (dead.service, dead.registration, data / ".0123abcd", mine.registration)
    gone = [bind(path, is_stale=True) for path in names]
    mine.prepare_folders()
    assert [path.name for path in gone if path.exists()] == []
    assert len(list(data.iterdir())) <= 1, "markers of removed sockets must be removed"
    assert stay.exists()


def test_stale_sockets_are_removed_and_those_of_a_running_pod_are_kept(folder: Path, bind: object) -> None:
    assert callable(bind)
    gone = [
        bind(folder / f"reg/gpu.example-{MINE}-reg.sock", is_stale=True),
        bind(folder / f"reg/gpu.example-{OTHER}-reg.sock", is_stale=True),
        bind(folder / f"data/dra-{OTHER}.sock", is_stale=True),
        bind(folder / "data/dra.sock", is_stale=True),
    ]
    stay = [
        bind(folder / "reg/gpu.example-reg.sock"),
        bind(folder / "reg/other.example-reg.sock", is_stale=True),
        bind(folder / f"reg/gpu.example-2-{OTHER}-reg.sock", is_stale=True),
        bind(folder / "data/own.sock", is_stale=True),
    ]
    SocketPaths(DRIVER, MINE, folder / "reg", folder / "data").prepare_folders()
    assert [path.name for path in gone if path.exists()] == []
    assert [path.name for path in stay if not path.exists()] == []


def test_a_file_that_is_no_socket_is_kept(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data/dra.sock").write_text("mine")
    SocketPaths(DRIVER, "", folder / "reg", folder / "data").prepare_folders()
    assert (folder / "data/dra.sock").read_text() == "mine"


def test_only_the_owner_can_access_the_data_folder(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o755)
    SocketPaths(DRIVER, "", folder / "reg", folder / "data").prepare_folders()
    assert (folder / "data").stat().st_mode & 0o777 == 0o700
