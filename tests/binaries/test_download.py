from __future__ import annotations

import gzip
import io
import os
import socket
import ssl
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from testbed.binaries import download, peers
from testbed.binaries.download import DownloadSource, Limits
from testbed.binaries.sources import Unavailable
from testbed.providers.local.certificates import Authority

KUBELET = "dl.k8s.io/v1.37.1/bin/linux/amd64/kubelet"
SCHEDULER = "dl.k8s.io/v1.37.1/bin/linux/amd64/kube-scheduler"
CNI = "github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz"
RUNC = "github.com/opencontainers/runc/releases/download/v1.3.4/runc.amd64"
CONTENT = os.urandom(300_000)


@pytest.fixture(autouse=True)
def amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.binaries.cache.host_arch", lambda: "amd64")


def packed(**members: bytes) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(raw.getvalue())


def test_a_program_with_the_right_checksum_is_cached(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    recorded = record_request("kubelet")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}
    assert site.paths == [f"/{KUBELET}.sha256", f"/{KUBELET}"]


def test_a_checksum_file_may_contain_only_the_digest(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.files[f"/{KUBELET}.sha256"] = site.files[f"/{KUBELET}.sha256"].split()[2]
    recorded = record_request("kubelet")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}


def test_an_archive_with_several_programs_is_downloaded_once(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(CNI, packed(ptp=b"PTP", bridge=b"BRIDGE", loopback=b"LOOPBACK"))
    recorded = record_request("cni-ptp", "cni-loopback")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"cni-ptp": b"PTP", "cni-loopback": b"LOOPBACK"}
    assert site.paths.count(f"/{CNI}") == 1


def test_an_archive_without_the_program_is_an_error(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(CNI, packed(bridge=b"BRIDGE"))

    with pytest.raises(Unavailable, match="does not contain ptp"):
        DownloadSource().fetch(record_request("cni-ptp").request)


@pytest.mark.parametrize("content", [b"no archive at all", packed(ptp=os.urandom(5000))[:3000]])
def test_a_broken_archive_is_an_error(content: bytes, site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(CNI, content)

    with pytest.raises(Unavailable, match="cannot be read"):
        DownloadSource().fetch(record_request("cni-ptp").request)


def test_a_file_with_a_wrong_checksum_is_refused_and_deleted(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT, digest="f" * 64)
    recorded = record_request("kubelet")

    with pytest.raises(Unavailable, match="wrong checksum"):
        DownloadSource().fetch(recorded.request)

    assert not recorded.cached
    assert not list((recorded.store.root / ".parts").iterdir())


def test_a_file_without_a_checksum_is_not_downloaded(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(RUNC, CONTENT, checksum="runc.sha256sum")
    site.files[f"/{RUNC.rsplit('/', 1)[0]}/runc.sha256sum"] = b"0" * 64 + b"  runc.arm64\n"

    with pytest.raises(Unavailable, match=r"has no sha256 of runc.amd64"):
        DownloadSource().fetch(record_request("runc").request)

    assert f"/{RUNC}" not in site.paths


def test_a_pinned_digest_overrides_the_sites_checksum(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    recorded = record_request("kubelet")
    pinned = recorded.programs[0].upstream.model_copy(update={"sha256": {f"https://{KUBELET}": "a" * 64}})
    recorded.programs = [recorded.programs[0].model_copy(update={"upstream": pinned})]

    with pytest.raises(Unavailable, match="expected sha256 aaaa"):
        DownloadSource().fetch(recorded.request)

    assert site.paths == [f"/{KUBELET}"]


def test_a_lost_connection_is_resumed(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left = 100_000, 2
    recorded = record_request("kubelet")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}
    assert site.requests[1:] == [f"/{KUBELET}", f"/{KUBELET} bytes=100000-", f"/{KUBELET} bytes=200000-"]


def test_a_download_that_fails_too_often_is_resumed_by_the_next_process(
    site: Any, record_request: Callable[..., Any]
) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left = 50_000, 3
    recorded = record_request("kubelet")

    with pytest.raises(Unavailable, match="the connection was lost after 150000 bytes"):
        DownloadSource().fetch(recorded.request)
    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}
    assert site.requests[-1] == f"/{KUBELET} bytes=150000-"


def test_a_download_starts_over_if_the_server_cannot_resume(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left, site.resumable = 100_000, 1, False
    recorded = record_request("kubelet")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}


@pytest.mark.parametrize("size", [1000, len(CONTENT), len(CONTENT) + 7])
def test_a_wrong_partial_download_is_downloaded_again(size: int, site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    recorded = record_request("kubelet")
    recorded.store.partial_download("kubelet-1.37.1-amd64").write_bytes(bytes(size))

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}


def test_a_site_that_refuses_is_not_tried_again(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.statuses[f"/{KUBELET}.sha256"] = 403
    recorded = record_request("kubelet", "kube-scheduler")

    with pytest.raises(Unavailable, match="HTTP 403") as refused:
        DownloadSource().fetch(recorded.request)
    with pytest.raises(Unavailable, match="HTTP 403"):
        DownloadSource().fetch(recorded.request)

    assert str(refused.value).count("HTTP 403") == 1
    assert len(site.requests) == 1


def test_a_missing_file_does_not_stop_the_others(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(SCHEDULER, CONTENT)
    recorded = record_request("kubelet", "kube-scheduler")

    with pytest.raises(Unavailable, match=r"kubelet.sha256: HTTP 404"):
        DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kube-scheduler": CONTENT}


def test_a_site_that_stops_sending_times_out(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.silent = threading.Event()

    with pytest.raises(Unavailable, match="timed out after 1000 bytes"):
        DownloadSource(limits=Limits(read=0.2)).fetch(record_request("kubelet").request)


def test_a_slow_site_is_given_up(site: Any, record_request: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)

    with pytest.raises(Unavailable, match=r"too slow, [\d.]+ kB/s"):
        DownloadSource(limits=Limits(grace=0, min_speed=1e15)).fetch(record_request("kubelet").request)


def test_an_unreachable_site_is_not_tried_again(
    record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DRA_TESTBED_MIRROR", f"http://127.0.0.1:{free.getsockname()[1]}")
        monkeypatch.setattr(download, "_unreachable", {})

        with pytest.raises(Unavailable, match=r"127\.0\.0\.1:\d+: .*[Cc]onnection refused") as refused:
            DownloadSource().fetch(record_request("kubelet", "kube-scheduler").request)

    assert str(refused.value).lower().count("refused") == 1


def test_an_architecture_without_binaries_is_unavailable(
    record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record_request("kubelet")
    recorded.store.arch = "riscv64"

    with pytest.raises(Unavailable, match="upstream publishes no binaries for riscv64"):
        DownloadSource().fetch(recorded.request)


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")

    through = download._pool("https://dl.k8s.io/v1")
    directly = download._pool("https://inside.example/v1")

    assert str(through.proxy) == "http://proxy.example:3128"
    assert directly.proxy is None


def test_programs_that_upstream_does_not_publish_are_not_requested(
    site: Any, record_request: Callable[..., Any]
) -> None:
    request = replace(record_request("kubelet").request, programs=list(peers().programs.values())[:1])

    with pytest.raises(Unavailable, match=r"publishes no binaries$") as refusal:
        DownloadSource().fetch(request)

    assert refusal.value.expected
    assert site.paths == []


@pytest.mark.parametrize("mirror", ["http://mirror.example", "mirror.example", "ftp://mirror.example"])
def test_a_mirror_without_https_is_refused_for_files_without_a_digest(
    record_request: Callable[..., Any], mirror: str
) -> None:
    source = DownloadSource(mirror=mirror)
    with pytest.raises(Unavailable, match=f"kubelet has no sha256 in the lock file, and the mirror {mirror} is not"):
        source.fetch(record_request("kubelet").request)


def test_a_redirect_is_followed_also_when_a_download_is_resumed(site: Any, record_request: Callable[..., Any]) -> None:
    """Release pages redirect every download to the server that stores it."""
    site.publish(f"stored/{KUBELET}", CONTENT)
    site.redirects = {f"/{KUBELET}{end}": f"/stored/{KUBELET}{end}" for end in ("", ".sha256")}
    site.cut_after, site.cuts_left = 100_000, 1
    recorded = record_request("kubelet")

    DownloadSource().fetch(recorded.request)

    assert recorded.cached == {"kubelet": CONTENT}
    assert site.requests[-1] == f"/stored/{KUBELET} bytes=100000-"


@pytest.fixture
def redirecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Any) -> Iterator[str]:
    """Serve https with a trusted certificate, and redirect each request to the site, which has no https."""

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"{site.address}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
            pass

    authority = Authority("test")
    certificate, key = authority.issue("mirror", names=["127.0.0.1"]).write(tmp_path, "mirror")
    authority.pair.write(tmp_path, "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirect)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_site_that_redirects_to_an_address_without_https_is_refused(
    redirecting: str, site: Any, record_request: Callable[..., Any]
) -> None:
    site.publish(KUBELET, CONTENT)
    recorded = record_request("kubelet")

    with pytest.raises(Unavailable, match="redirects to an address without https"):
        DownloadSource(mirror=redirecting).fetch(recorded.request)

    assert not recorded.cached
