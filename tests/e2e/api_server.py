"""Run a real API server with etcd and nothing else, within three seconds and without root, for tests that need real responses."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fake_driver.api.client import ApiClient
from fake_driver.errors import DriverError
from testbed import binaries, process
from testbed.binaries.lock import minors
from testbed.kube.client import Kube
from testbed.progress import Silent
from testbed.waiting import Budget, NotYet, eventually

UP = Budget("API server", 60, "etcd, an API server and its bootstrap take 3 s on an idle host")
Object = dict[str, Any]
T = TypeVar("T")
# Only the newest version by default: others may have to be built, which takes minutes. `tox -e matrix` tests all.
MINORS = minors() if os.environ.get("DRA_TESTBED_TEST_ALL_VERSIONS") else minors()[:1]


@dataclass
class ApiServer:
    """An API server of one version, with its own etcd."""

    folder: Path
    minor: str
    gates: dict[str, bool] = field(default_factory=dict)
    served: str = ""
    port: int = 0

    @property
    def slices_path(self) -> str:
        """Return the path of ResourceSlices in the API."""
        return f"/apis/resource.k8s.io/{'v1beta1' if self.served else 'v1'}/resourceslices"

    def client(self) -> ApiClient:
        """Return a client with all permissions."""
        return ApiClient(
            f"https://127.0.0.1:{self.port}",
            token_file=self.folder / "token",
            ca_file=self.folder / "certificates" / "apiserver.crt",
        )

    def call(self, function: Callable[[ApiClient], T]) -> T:
        """Call a function with a client that has all permissions."""
        with contextlib.closing(self.client()) as api:
            return function(api)

    def delete_slices(self, selector: str = "") -> None:
        """Delete all slices, or those that match a field selector, as a kubelet does when it starts."""
        query = f"?{urlencode({'fieldSelector': selector})}" if selector else ""
        self.call(lambda api: api._call("DELETE", f"{self.slices_path}{query}"))

    def edit_slice(self, name: str, change: Callable[[Object], object]) -> None:
        """Change the spec of a slice, as a user could do."""
        found = self.slices()[name]
        change(found["spec"])
        self.call(lambda api: api.replace(f"{self.slices_path}/{name}", found))

    def slices(self) -> dict[str, Object]:
        """Return all slices by name."""
        listed = self.call(lambda api: api.get(self.slices_path))
        return {item["metadata"]["name"]: item for item in listed.get("items") or []}


@contextlib.contextmanager
def running(server: ApiServer) -> Iterator[ApiServer]:
    """Start etcd and the API server, wait until it is ready, and terminate both at the end."""
    lock = binaries.lock_for(server.minor)
    programs = binaries.ensure(lock, ["etcd", "kube-apiserver"], progress=Silent())
    server.port, clients, peers = _free_ports(3)
    _write_keys(server.folder)
    started = [
        process.start(
            process.kill_with_parent(_etcd(programs["etcd"], server.folder, clients, peers)),
            log=server.folder / "etcd.log",
        ),
        process.start(
            process.kill_with_parent(_api_server(programs["kube-apiserver"], server, clients)),
            log=server.folder / "api.log",
        ),
    ]
    try:
        eventually(lambda: _ready(server), "the API server", UP, hint=str(server.folder / "api.log"))
        for name in ("worker", "node-2"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            server.call(functools.partial(ApiClient.create, path="/api/v1/nodes", body=node))
        yield server
    finally:
        process.kill_all(started)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _write_keys(folder: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    (folder / "accounts.key").write_bytes(pem)
    (folder / "token").write_text("of-a-test")
    (folder / "tokens.csv").write_text("of-a-test,tester,1,system:masters\n")


def _etcd(program: Path, folder: Path, clients: int, peers: int) -> list[str]:
    client_url, peer_url = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    return [
        str(program), f"--data-dir={folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}", f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
    ]  # fmt: skip


def _api_server(program: Path, server: ApiServer, etcd: int) -> list[str]:
    folder = server.folder
    gates = ",".join(f"{name}={str(on).lower()}" for name, on in server.gates.items())
    return [
        str(program), f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={server.port}", "--bind-address=127.0.0.1",
        f"--cert-dir={folder}/certificates", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC",
        f"--service-account-key-file={folder}/accounts.key", f"--service-account-signing-key-file={folder}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
        *([f"--feature-gates={gates}"] if gates else []), *([f"--runtime-config={server.served}"] if server.served else []),
    ]  # fmt: skip


def _ready(server: ApiServer) -> None:
    try:
        server.call(lambda api: api.get("/apis/resource.k8s.io"))
        server.call(lambda api: api.get("/api/v1/namespaces/default"))
    except (DriverError, OSError) as not_yet:
        raise NotYet(str(not_yet)) from not_yet


def kube_client(server: ApiServer) -> Kube:
    """Write a kubeconfig with all permissions into the server's folder, and return a client that uses it."""
    authority = str(server.folder / "certificates" / "apiserver.crt")
    cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": authority}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "of-a-test"}}],
    }
    file = server.folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return Kube(file)
