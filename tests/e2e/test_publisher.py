"""The fake driver's publisher and a real API server with its etcd, without anything else: three seconds each, and no root."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fake_driver.api import Api
from fake_driver.errors import DriverError
from fake_driver.hardware import description
from fake_driver.hardware.devices import changed, pools
from fake_driver.hardware.model import Change, Device, Pool, Taint
from fake_driver.journal import Journal
from fake_driver.publisher import Publisher
from fake_driver.slices import Owner, desired, of_network
from testbed import binaries, process
from testbed.progress import Silent
from testbed.waiting import Budget, NotYet, eventually

DRIVER = "gpu.dra-testbed.example"
HARDWARE = Path(__file__).parents[2] / "manifests" / "hardware"
UP = Budget("API server", 60, "etcd, an API server and its own bootstrap take 3 s where nobody else works")
SOON = Budget("slices", 15, "a few writes, and at most some back-off")
EVERYTHING = (
    "DRADeviceTaints", "DRAPartitionableDevices", "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAListTypeAttributes",
)  # fmt: skip
Object = dict[str, Any]
T = TypeVar("T")


@dataclass
class Server:
    """An API server of one version, with its own etcd."""

    folder: Path
    minor: str
    gates: dict[str, bool] = field(default_factory=dict)
    served: str = ""
    port: int = 0

    def api(self) -> Api:
        """A client with all rights."""
        return Api(
            f"https://127.0.0.1:{self.port}",
            token_file=self.folder / "token",
            ca_file=self.folder / "certificates" / "apiserver.crt",
        )

    def ask(self, call: Callable[[Api], T]) -> T:
        """One call with all rights."""
        with contextlib.closing(self.api()) as api:
            return call(api)

    def slices(self, version: str = "v1") -> dict[str, Object]:
        """All slices, by name."""
        listed = self.ask(lambda api: api.get(f"/apis/resource.k8s.io/{version}/resourceslices"))
        return {item["metadata"]["name"]: item for item in listed.get("items") or []}


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    """Start both programs, wait until the API server is ready, and end both."""
    lock = binaries.lock_for(server.minor)
    programs = binaries.ensure(lock, ["etcd", "kube-apiserver"], progress=Silent())
    server.port, clients, peers = _free_ports(3)
    _write_keys(server.folder)
    started = [
        process.start(process.tied(_etcd(programs["etcd"], server.folder, clients, peers)), log=server.folder / "etcd.log"),
        process.start(process.tied(_api_server(programs["kube-apiserver"], server, clients)), log=server.folder / "api.log"),
    ]
    try:
        eventually(lambda: _ready(server), "the API server", UP, hint=str(server.folder / "api.log"))
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
        server.ask(lambda api: api.create("/api/v1/nodes", node))
        yield server
    finally:
        process.kill_all(started)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _write_keys(folder: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    (folder / "accounts.key").write_bytes(pem)
    (folder / "token").write_text("of-a-test")
    (folder / "tokens.csv").write_text("of-a-test,tester,1,system:masters\n")


def _etcd(program: Path, folder: Path, clients: int, peers: int) -> list[str]:
    here, there = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    return [
        str(program), f"--data-dir={folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}", f"--listen-peer-urls={there}", f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
    ]  # fmt: skip


def _api_server(program: Path, server: Server, etcd: int) -> list[str]:
    folder = server.folder
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in server.gates.items())
    return [
        str(program), f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={server.port}", "--bind-address=127.0.0.1",
        f"--cert-dir={folder}/certificates", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
        f"--service-account-key-file={folder}/accounts.key", f"--service-account-signing-key-file={folder}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
        *([f"--feature-gates={gates}"] if gates else []), *([f"--runtime-config={server.served}"] if server.served else []),
    ]  # fmt: skip


def _ready(server: Server) -> None:
    try:
        server.ask(lambda api: api.get("/apis/resource.k8s.io"))
        server.ask(lambda api: api.get("/api/v1/namespaces/default"))
    except (DriverError, OSError) as not_yet:
        raise NotYet(str(not_yet)) from not_yet


@dataclass
class Writer:
    """A publisher for what a hardware file says, and what may be changed of it while it runs."""

    publisher: Publisher
    api: Api
    journal: Path
    changes: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        """Something happens to the hardware."""
        self.changes.append(change)
        self.publisher.refresh()

    def notes(self, event: str) -> list[Object]:
        """What the journal says of one kind of event."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [note for note in map(json.loads, lines) if note["event"] == event]

    def stop(self) -> None:
        """The process ends."""
        self.api.close()
        self.publisher.stop()


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    """Start to publish a built-in hardware file, for a node or (with '') for the network."""
    started: list[Writer] = []

    def start(server: Server, hardware: str, node: str = "worker") -> Writer:
        here, *of_the_network = pools(description.read(HARDWARE / f"{hardware}.yaml"), node or "worker")
        api, journal, changes = server.api(), tmp_path / f"journal-{len(started)}.jsonl", list[Change]()

        def wanted(owner: Owner) -> Sequence[Object]:
            if not node:
                return of_network(DRIVER, of_the_network)
            return desired(DRIVER, owner, changed(here.devices, changes, here.name))

        publisher = Publisher(api, DRIVER, node, wanted, Journal(journal))
        writer = Writer(publisher, api, journal, changes)
        started.append(writer)
        publisher.start()
        assert publisher.published.wait(20), journal.read_text() if journal.exists() else "nothing was written"
        return writer

    yield start
    for writer in started:
        writer.stop()


@pytest.fixture(scope="module", params=["1.34", "1.35", "1.36", "1.37"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API server with every feature that slices have a field for, where that version knows it."""
    known = binaries.lock_for(request.param).gates
    gates = {name: True for name in EVERYTHING if name in known and not known[name].locked}
    versions = ",".join(f"resource.k8s.io/{version}=true" for version in ("v1beta1", "v1beta2"))
    with running(Server(tmp_path_factory.mktemp("server"), request.param, gates, versions)) as found:
        yield found


@pytest.fixture(autouse=True)
def no_slices(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test finds an API server without slices."""
    yield


def test_it(server: Server, write: Callable[..., Writer]) -> None:
    writer = write(server, "teaching")
    print(json.dumps(server.slices(), indent=1))
    print(writer.journal.read_text())
    for hw in sorted(p.stem for p in HARDWARE.glob("*.yaml")):
        w = write(server, hw)
        print(hw, w.publisher.dropped)
        w.stop()
    assert 0
