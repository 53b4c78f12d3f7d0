"""A pod's image is pulled through the nodes' proxy, from a small registry on this host that serves one of our archives."""

from __future__ import annotations

import json
import re
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from testbed import images
from testbed.bringup import Testbed
from testbed.process import run
from testbed.progress import Silent


class Registry(BaseHTTPRequestHandler):
    """A server of the part of the distribution API that a pull needs, with one OCI archive."""

    blobs: dict[str, bytes]
    index: dict[str, Any]
    requests: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.requests.append((self.path, self.client_address[0]))
        digest, kind = self.path.rpartition("/")[2], "application/octet-stream"
        if "/manifests/" in self.path:
            kind = self.index["manifests"][0]["mediaType"]
            digest = self.index["manifests"][0]["digest"] if not digest.startswith("sha256:") else digest
        body = b"{}" if self.path == "/v2/" else self.blobs.get(digest)
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Docker-Content-Digest", digest)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def registry() -> Iterator[str]:
    """Yield the address of a registry that has the workload image under every name."""
    output = run(["ip", "-4", "-o", "addr", "show", "scope", "global"]).stdout
    mine = [
        address for link, address in re.findall(r"\d+: (\S+)\s+inet ([\d.]+)", output) if not link.startswith("dratb")
    ]
    if not mine:
        pytest.skip("this host has no address of its own that a node could be sent to")
    with tarfile.open(images.workload(Silent()).archive) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}  # type: ignore[union-attr]  # a file has content
    Registry.blobs = {
        f"sha256:{name.rpartition('/')[2]}": data for name, data in files.items() if name.startswith("blobs/")
    }
    Registry.requests = []
    Registry.index = json.loads(files["index.json"])
    server = ThreadingHTTPServer((mine[0], 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{mine[0]}:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_pod_runs_an_image_that_was_pulled(testbed: Testbed, kubectl: Any, registry: str) -> None:
    """The container runtime is configured to use plain HTTP for this registry. The proxy on this host sends the requests."""
    hosts = f'server = "http://{registry}"\n[host."http://{registry}"]\n  capabilities = ["pull", "resolve"]\n'
    for node in testbed.cluster.nodes():
        folder = "/etc/containerd/certs.d/registry.example"
        node.run("sh", "-c", f"mkdir -p {folder} && cat > {folder}/hosts.toml <<'END'\n{hosts}END")

    kubectl.run_pod("pulled", "sleep 3600", image="registry.example/somebody/tool:1")

    assert any("/somebody/tool/manifests/1" in path for path, _ in Registry.requests)
    assert {client for _, client in Registry.requests} == {registry.partition(":")[0]}
