"""Fixtures of the fake driver's tests: an API server in this process, a kubelet, and drivers that run in this process."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from fake_driver.api.backoff import Backoff
from fake_driver.api.client import ApiClient
from fake_driver.journal import Journal
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slices import Owner
from fake_driver.roles.node_driver import NodeProcess, Parts, read_parts
from fake_driver.settings import Settings
from testbed.kubelet.stubs import dra_v1_pb2, dra_v1_pb2_grpc, registration_v1_pb2, registration_v1_pb2_grpc
from tests.fake_driver.fake_api import FakeApi, Handler, Threads
from tests.fake_driver.fake_node import Node
from tests.fake_driver.granted_permissions import granted
from tests.fake_driver.publishing.gpus_and_events import DRIVER

HARDWARE = """
apiVersion: dra-testbed/v1alpha1
kind: Hardware
metadata: {name: four}
spec:
  devices:
  - {kind: gpu, count: 4, attributes: {model: F100}, capacity: {memory: 80Gi}}
"""
Object = dict[str, Any]


class Kubelet:
    """Calls a driver's sockets as the kubelet does."""

    def __init__(self) -> None:
        self._channels: dict[Path, grpc.Channel] = {}

    def channel(self, socket: Path) -> grpc.Channel:
        if socket not in self._channels:
            # A later kubelet must not reuse a connection of this process to the same path.
            options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
            self._channels[socket] = grpc.insecure_channel(f"unix:{socket}", options=options)
        return self._channels[socket]

    def dra(self, socket: Path, stubs: ModuleType = dra_v1_pb2_grpc) -> Any:
        return stubs.DRAPluginStub(self.channel(socket))

    def registration(self, socket: Path) -> Any:
        return registration_v1_pb2_grpc.RegistrationStub(self.channel(socket))

    def register(self, socket: Path) -> Any:
        """Register the driver, with the kubelet's timeouts."""
        stub = self.registration(socket)
        info = stub.GetInfo(registration_v1_pb2.InfoRequest(), timeout=1, wait_for_ready=True)
        stub.NotifyRegistrationStatus(registration_v1_pb2.RegistrationStatus(plugin_registered=True), timeout=5)
        return info

    def prepare(self, socket: Path, *claims: Object) -> Any:
        """Return the devices or the error of each claim by UID."""
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim) for claim in claims])
        return self.dra(socket).NodePrepareResources(request, timeout=10).claims

    def unprepare(self, socket: Path, *claims: Object) -> Any:
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim) for claim in claims])
        return self.dra(socket).NodeUnprepareResources(request, timeout=10).claims

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def start_publisher(server: str, tmp_path: Path) -> Iterator[Callable[..., Publisher]]:
    """Start a publisher of the slices that a function returns."""
    at_end: list[Callable[[], None]] = []

    def started(slices: Callable[[Owner], list[Object]], node: str = "worker") -> Publisher:
        api = ApiClient(server)
        publisher = Publisher(api, DRIVER, node, slices, Journal(tmp_path / "journal.jsonl"))
        at_end.extend([api.close, publisher.stop])
        publisher.start()
        return publisher

    yield started
    for end in at_end:
        end()


@pytest.fixture
def fake_api() -> Iterator[FakeApi]:
    api = FakeApi()
    yield api
    api.close()
    denied = api.requested - granted("node") - granted("network") - {("", "get")}
    assert not denied, f"the driver made requests that its manifests do not allow: {sorted(denied)}"


@pytest.fixture
def server(fake_api: FakeApi) -> Iterator[str]:
    """Serve the fake API and return its URL."""
    handler = type("Bound", (Handler,), {"fake": fake_api})
    with Threads(("127.0.0.1", 0), handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listener.server_address[1]}"
        fake_api.close()
        listener.shutdown()
        thread.join()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Create a folder with a short path, because socket paths are limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def settings(folder: Path, server: str) -> Settings:
    (folder / "hardware.yaml").write_text(HARDWARE)
    return Settings(
        node="worker",
        hardware=str(folder / "hardware.yaml"),
        registry=str(folder / "reg"),
        plugins=str(folder / "plugins"),
        cdi=str(folder / "cdi"),
        api_server=server,
        token_file="",
        ca_file="",
    )


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    kubelet = Kubelet()
    yield kubelet
    kubelet.close()


@pytest.fixture
def start_driver(settings: Settings) -> Iterator[Callable[..., NodeProcess]]:
    """Start a node driver in this process; it is stopped after the test, before its folders and its API server are removed."""
    running: list[NodeProcess] = []

    def started(settings: Settings, change: Callable[[Parts], Parts] = lambda parts: parts) -> NodeProcess:
        process = NodeProcess(settings, change(read_parts(settings)))
        process.start()
        running.append(process)
        return process

    yield started
    for process in running:
        process.stop()


@pytest.fixture
def backoffs(monkeypatch: pytest.MonkeyPatch) -> list[Backoff]:
    """Record each back-off and shorten its delay."""
    found: list[Backoff] = []

    def next_delay(pace: Backoff) -> float:
        found.append(pace)
        return 0.01

    monkeypatch.setattr(Backoff, "next_delay", next_delay)
    return found


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Wait until another thread makes a condition true."""

    def waited(check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 5
        while not check():
            assert time.monotonic() < deadline, "not true within 5 s"
            threading.Event().wait(0.005)

    return waited
