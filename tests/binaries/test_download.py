from __future__ import annotations

import gzip
import io
import os
import socket
import tarfile
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.binaries import download, peers
from testbed.binaries.download import DownloadSource, Limits
from testbed.binaries.sources import Unavailable

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


def test_a_program_whose_checksum_fits_is_kept(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    ask = asked("kubelet")

    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}
    assert site.paths == [f"/{KUBELET}.sha256", f"/{KUBELET}"]


def test_a_checksum_file_may_hold_the_digest_alone(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.files[f"/{KUBELET}.sha256"] = site.files[f"/{KUBELET}.sha256"].split()[2]
    ask = asked("kubelet")

    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}


def test_an_archive_with_many_programs_is_fetched_once(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(CNI, packed(ptp=b"PTP", bridge=b"BRIDGE", loopback=b"LOOPBACK"))
    ask = asked("cni-ptp", "cni-loopback")

    DownloadSource().supply(ask.order)

    assert ask.kept == {"cni-ptp": b"PTP", "cni-loopback": b"LOOPBACK"}
    assert site.paths.count(f"/{CNI}") == 1


def test_an_archive_without_the_program_is_told(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(CNI, packed(bridge=b"BRIDGE"))

    with pytest.raises(Unavailable, match="holds no ptp"):
        DownloadSource().supply(asked("cni-ptp").order)


@pytest.mark.parametrize("content", [b"no archive at all", packed(ptp=os.urandom(5000))[:3000]])
def test_a_broken_archive_is_told(content: bytes, site: Any, asked: Callable[..., Any]) -> None:
    site.publish(CNI, content)

    with pytest.raises(Unavailable, match="cannot be read"):
        DownloadSource().supply(asked("cni-ptp").order)


def test_a_wrong_checksum_is_refused_and_nothing_of_it_stays(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT, digest="f" * 64)
    ask = asked("kubelet")

    with pytest.raises(Unavailable, match="wrong checksum"):
        DownloadSource().supply(ask.order)

    assert not ask.kept
    assert not list((ask.store.root / ".parts").iterdir())


def test_a_file_that_no_checksum_names_is_not_even_asked_for(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(RUNC, CONTENT, checksum="runc.sha256sum")
    site.files[f"/{RUNC.rsplit('/', 1)[0]}/runc.sha256sum"] = b"0" * 64 + b"  runc.arm64\n"

    with pytest.raises(Unavailable, match=r"names no sha256 of runc.amd64"):
        DownloadSource().supply(asked("runc").order)

    assert f"/{RUNC}" not in site.paths


def test_a_digest_that_the_lock_pins_is_believed_more_than_the_site(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    ask = asked("kubelet")
    pinned = ask.programs[0].upstream.model_copy(update={"sha256": {"kubelet": "a" * 64}})
    ask.programs = [ask.programs[0].model_copy(update={"upstream": pinned})]

    with pytest.raises(Unavailable, match="it should be sha256 aaaa"):
        DownloadSource().supply(ask.order)

    assert site.paths == [f"/{KUBELET}"]


def test_a_cut_connection_is_resumed_where_it_was_cut(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left = 100_000, 2
    ask = asked("kubelet")

    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}
    assert site.requests[1:] == [f"/{KUBELET}", f"/{KUBELET} bytes=100000-", f"/{KUBELET} bytes=200000-"]


def test_a_connection_that_is_cut_again_and_again_is_given_up_and_resumed_by_the_next_process(
    site: Any, asked: Callable[..., Any]
) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left = 50_000, 3
    ask = asked("kubelet")

    with pytest.raises(Unavailable, match="the connection was cut after 150000 bytes"):
        DownloadSource().supply(ask.order)
    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}
    assert site.requests[-1] == f"/{KUBELET} bytes=150000-"


def test_a_server_that_cannot_resume_starts_over(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.cut_after, site.cuts_left, site.resumable = 100_000, 1, False
    ask = asked("kubelet")

    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}


@pytest.mark.parametrize("size", [1000, len(CONTENT), len(CONTENT) + 7])
def test_the_wrong_beginning_of_an_earlier_download_costs_a_second_try(
    size: int, site: Any, asked: Callable[..., Any]
) -> None:
    site.publish(KUBELET, CONTENT)
    ask = asked("kubelet")
    ask.store.part("kubelet-1.37.1").write_bytes(bytes(size))

    DownloadSource().supply(ask.order)

    assert ask.kept == {"kubelet": CONTENT}


def test_a_site_that_refuses_is_asked_once(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.statuses[f"/{KUBELET}.sha256"] = 403
    ask = asked("kubelet", "kube-scheduler")

    with pytest.raises(Unavailable, match="HTTP 403") as refused:
        DownloadSource().supply(ask.order)
    with pytest.raises(Unavailable, match="HTTP 403"):
        DownloadSource().supply(ask.order)

    assert str(refused.value).count("HTTP 403") == 1
    assert len(site.requests) == 1


def test_a_file_that_is_missing_does_not_hold_up_the_others(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(SCHEDULER, CONTENT)
    ask = asked("kubelet", "kube-scheduler")

    with pytest.raises(Unavailable, match=r"kubelet.sha256: HTTP 404"):
        DownloadSource().supply(ask.order)

    assert ask.kept == {"kube-scheduler": CONTENT}


def test_a_site_that_falls_silent_is_given_up(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)
    site.silent = threading.Event()

    with pytest.raises(Unavailable, match="no answer in time after 1000 bytes"):
        DownloadSource(limits=Limits(read=0.2)).supply(asked("kubelet").order)


def test_a_site_that_is_too_slow_is_given_up(site: Any, asked: Callable[..., Any]) -> None:
    site.publish(KUBELET, CONTENT)

    with pytest.raises(Unavailable, match=r"too slow, [\d.]+ kB/s"):
        DownloadSource(limits=Limits(judged_after=0, slowest=1e15)).supply(asked("kubelet").order)


def test_a_site_that_is_not_there_is_asked_once(asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DRA_TESTBED_MIRROR", f"http://127.0.0.1:{free.getsockname()[1]}")
        monkeypatch.setattr(download, "_refused", {})

        with pytest.raises(Unavailable, match=r"127\.0\.0\.1:\d+: .*[Cc]onnection refused") as refused:
            DownloadSource().supply(asked("kubelet", "kube-scheduler").order)

    assert str(refused.value).lower().count("refused") == 1


def test_an_architecture_that_nobody_publishes_for_is_said(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asked("kubelet")
    ask.store.arch = "riscv64"

    with pytest.raises(Unavailable, match="nothing is published for riscv64"):
        DownloadSource().supply(ask.order)


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")

    through = download._pool("https://dl.k8s.io/v1")
    directly = download._pool("https://inside.example/v1")

    assert str(through.proxy) == "http://proxy.example:3128"
    assert directly.proxy is None


def test_what_upstream_does_not_publish_is_not_asked_for(site: Any, asked: Callable[..., Any]) -> None:
    order = replace(asked("kubelet").order, programs=list(peers().programs.values())[:1])

    with pytest.raises(Unavailable, match="publishes no program") as refusal:
        DownloadSource().supply(order)

    assert refusal.value.expected
    assert site.paths == []
