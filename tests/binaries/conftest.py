"""Fixtures of the tests of binaries: a cache, a fake `go`, and a server with upstream's tree of downloads."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testbed.binaries import Program, download, lock_for, toolchain
from testbed.binaries.cache import BinaryCache
from testbed.binaries.sources import FetchRequest
from testbed.progress import Step

FAKE_GO = """#!/bin/sh
# `go env GOVERSION`, and `go build ... -o DIR/ PACKAGE...` that writes one script for each package.
case "$1" in env) echo "${FAKE_GO_VERSION:-go1.99.0}"; exit 0;; esac
echo "$PWD $*" >> "$FAKE_GO_RUNS"
env > "$FAKE_GO_RUNS.env"
if [ -n "$FAKE_GO_FAILS" ]; then echo "go: downloading example.com v1"; echo "$FAKE_GO_FAILS"; exit 1; fi
while [ "$1" != "-o" ]; do shift; done
out=$2; shift 2
for package in "$@"; do
    echo "$package"
    name=$(basename "$package"); [ "$name" = v3 ] && name=server
    { echo "#!/bin/sh"; echo "echo built $name"; } > "$out$name.new"; mv "$out$name.new" "$out$name"
    if [ -n "$FAKE_GO_WAITS" ]; then read -r _ < "$FAKE_GO_WAITS"; fi
done
"""


@pytest.fixture
def store(tmp_path: Path) -> BinaryCache:
    return BinaryCache(tmp_path / "cache")


@pytest.fixture
def program() -> Callable[[str], Program]:
    return lock_for("1.37").program


@dataclass
class RecordedRequest:
    """A request to a source that records what the source provides."""

    programs: Sequence[Program]
    store: BinaryCache
    cached: dict[str, bytes] = field(default_factory=dict)
    used: dict[str, Path] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def request(self) -> FetchRequest:
        return FetchRequest(self.programs, self.store, Step("test"), self._add_to_cache, self._use_in_place)

    def _add_to_cache(self, program: Program, file: Path, version: str) -> None:
        self.cached[program.name] = self.store.add(program, "download", file, version=version).read_bytes()

    def _use_in_place(self, program: Program, path: Path, remark: str) -> None:
        self.used[program.name] = path
        self.remarks.append(remark)


@pytest.fixture
def record_request(store: BinaryCache, program: Callable[[str], Program]) -> Callable[..., RecordedRequest]:
    def record(*names: str) -> RecordedRequest:
        return RecordedRequest([program(name) for name in names], store)

    return record


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that puts a script first on PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def put(name: str, script: str) -> Path:
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
        return folder / name

    return put


@dataclass
class FakeGo:
    """The fake go command: its recorded calls, and controls to make it wait or fail."""

    log: Path
    fifo: Path
    patch: pytest.MonkeyPatch
    gate: int = -1  # both ends of the fifo: written data stays until it is read, and closing it releases all readers

    @property
    def runs(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        lines = Path(f"{self.log}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def fails(self, output: str) -> None:
        self.patch.setenv("FAKE_GO_FAILS", output)

    def waits(self) -> None:
        """Wait after each program, until release()."""
        os.mkfifo(self.fifo)
        self.gate = os.open(self.fifo, os.O_RDWR)
        self.patch.setenv("FAKE_GO_WAITS", str(self.fifo))

    def release(self) -> None:
        os.write(self.gate, b"\n")


@pytest.fixture
def fake_go(on_path: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGo]:
    on_path("go", FAKE_GO)
    monkeypatch.setattr(toolchain, "_DEFAULT_FOLDER", tmp_path / "no-go-here")
    monkeypatch.setenv("FAKE_GO_RUNS", str(tmp_path / "go-runs"))
    go = FakeGo(tmp_path / "go-runs", tmp_path / "fifo", monkeypatch)
    yield go
    if go.gate >= 0:
        os.close(go.gate)


@dataclass
class Site:
    """A server with the release sites' files, and the ways in which it can misbehave."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cut_after: int = 0
    cuts_left: int = 0
    resumable: bool = True
    silent: threading.Event | None = None

    def publish(self, path: str, content: bytes, *, checksum: str = ".sha256", digest: str = "") -> None:
        name = path.rsplit("/", 1)[1]
        sha256 = digest or hashlib.sha256(content).hexdigest()
        beside = f"{path}{checksum}" if checksum.startswith(".") else f"{path.rsplit('/', 1)[0]}/{checksum}"
        self.files[f"/{path}"] = content
        self.files[f"/{beside}"] = f"{'0' * 64}  other\n{sha256}  {name}\n".encode()

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[0] for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, asked_range = self.site, self.headers.get("Range", "")
        site.requests.append(f"{self.path} {asked_range}".strip())
        if self.path in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = site.files.get(self.path)
        status = site.statuses.get(self.path, 200 if content is not None else 404)
        if content is None or status != 200:
            self.send_error(status)
            return
        begin = int(asked_range.removeprefix("bytes=").rstrip("-")) if asked_range and site.resumable else 0
        if begin >= len(content) > 0:
            self.send_error(416)
            return
        self._send(content, begin)

    def _send(self, content: bytes, begin: int) -> None:
        site, body = self.site, content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        big = len(content) > 1000
        if big and site.silent:
            self.wfile.write(body[:1000])
            self.wfile.flush()
            site.silent.wait(10)
        elif big and site.cuts_left:
            site.cuts_left -= 1
            self.wfile.write(body[: site.cut_after])
        else:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    served = Site()

    class Handler(_Handler):
        site = served

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("DRA_TESTBED_MIRROR", served.address)
    monkeypatch.setattr(download, "_unreachable", {})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield served
    if served.silent:
        served.silent.set()
    server.shutdown()
    thread.join()
    server.server_close()
