from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from testbed import folders, process
from testbed.binaries import ensure, inventory, lock_for
from testbed.binaries.cache import BinaryCache
from testbed.binaries.fetch import Fetcher, choose_sources
from testbed.binaries.sources import Cached, Folder
from testbed.errors import TestbedError, UsageError
from testbed.process import ProcessId
from testbed.progress import Progress, Silent
from testbed.waiting import Budget, eventually_true

LOCAL = "kube-apiserver kube-scheduler kubelet etcd containerd ctr runc cni-ptp kubectl"
SOON = Budget("the other process", 20, "it must start Python")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "all-caches"))


@pytest.fixture
def screen() -> Progress:
    return Progress(Console(file=io.StringIO(), width=300))


def shown(screen: Progress) -> str:
    assert isinstance(screen.console.file, io.StringIO)
    return screen.console.file.getvalue()


def run_elsewhere(log: Path) -> ProcessId:
    """Start `ensure` for two programs in another process."""
    script = (
        "from testbed.binaries import *; from testbed.progress import Progress; "
        "ensure(lock_for('1.37'), ['kubelet', 'kube-scheduler'], progress=Progress(), sources=['build'])"
    )
    return process.start(
        [sys.executable, "-c", script], log=log, env=os.environ | {"PYTHONPATH": str(folders.packages())}
    )


def test_the_first_source_with_the_program_is_used_and_earlier_failures_are_reported(
    site: Any, fake_go: Any, screen: Progress
) -> None:
    site.statuses["/dl.k8s.io/v1.37.1/bin/linux/amd64/kubelet.sha256"] = 403

    found = ensure(lock_for("1.37"), ["kubelet"], progress=screen)

    assert found["kubelet"].is_absolute()
    assert found["kubelet"].name == "kubelet"
    assert "download: 127.0.0.1" in shown(screen)
    assert "kubelet 1.37.1 built, 0 MB; none remaining" in shown(screen)


def test_cached_programs_are_used_without_other_sources(site: Any, fake_go: Any) -> None:
    lock = lock_for("1.37")
    first = ensure(lock, ["kubelet", "etcd"], progress=Silent(), sources=["build"])
    runs = len(fake_go.runs)

    again = ensure(lock, ["etcd", "kubelet"], progress=Silent())

    assert again == first
    assert list(again) == ["etcd", "kubelet"]
    assert len(fake_go.runs) == runs
    assert not site.requests


def test_a_damaged_program_is_reported_and_built_again(fake_go: Any, screen: Progress) -> None:
    lock = lock_for("1.37")
    kubelet = ensure(lock, ["kubelet"], progress=Silent(), sources=["build"])["kubelet"]
    whole = kubelet.read_bytes()
    kubelet.write_bytes(bytes(len(whole)))

    ensure(lock, ["kubelet"], progress=screen, sources=["build"])

    assert kubelet.read_bytes() == whole
    assert "cache: damaged: " in shown(screen)


def test_the_source_cache_fetches_nothing(site: Any, fake_go: Any) -> None:
    with pytest.raises(TestbedError, match=r"(?s)no source has kubelet .*cache: not cached yet"):
        ensure(lock_for("1.37"), ["kubelet"], progress=Silent(), sources=["cache"])

    assert not site.requests
    assert not fake_go.runs


def test_a_cached_build_is_not_used_as_a_download(site: Any, fake_go: Any) -> None:
    ensure(lock_for("1.37"), ["kubelet"], progress=Silent(), sources=["build"])

    with pytest.raises(TestbedError, match=r"download: .*HTTP 404"):
        ensure(lock_for("1.37"), ["kubelet"], progress=Silent(), sources=["download"])


def test_one_error_lists_the_reasons_and_hints_of_all_sources(
    site: Any, fake_go: Any, on_path: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.statuses["/github.com/opencontainers/runc/releases/download/v1.3.4/runc.sha256sum"] = 403
    on_path("gcc", "#!/bin/sh\n")
    on_path("pkg-config", "#!/bin/sh\nexit 1\n")
    on_path("apt-get", "#!/bin/sh\necho 'E: Temporary failure resolving' >&2; exit 100\n")
    monkeypatch.setattr("testbed.binaries.cache.host_arch", lambda: "amd64")

    with pytest.raises(TestbedError) as failed:
        ensure(lock_for("1.37"), ["runc"], progress=Silent())

    message = str(failed.value)
    assert message.splitlines()[0] == "no source has runc (runc 1.3.4)"
    assert "download: 127.0.0.1" in message
    assert "HTTP 403" in message
    assert "build: runc needs a C compiler and libraries; missing: libseccomp-dev" in message
    assert "system: apt-get download failed: E: Temporary failure resolving" in message
    assert "apt install libseccomp-dev; or " in message


def test_batches_are_in_the_order_of_upstreams_with_kubectl_last(fake_go: Any, screen: Progress) -> None:
    lock = lock_for("1.37")
    wanted = [lock.program(name) for name in LOCAL.split()]

    fetcher = Fetcher(lock, wanted, [], BinaryCache(), screen)

    assert [[program.name for program in batch] for batch in fetcher.batches()] == [
        ["runc"],
        ["cni-ptp"],
        ["etcd"],
        ["containerd", "ctr"],
        ["kube-apiserver", "kube-scheduler", "kubelet"],
        ["kubectl"],
    ]


def test_remaining_programs_are_shown_with_each_program(fake_go: Any, screen: Progress) -> None:
    names = ["cni-ptp", "etcd", "kind", "kube-apiserver", "kubelet", "kubectl"]

    ensure(lock_for("1.37"), names, progress=screen, sources=["build"])

    assert "cni-ptp 1.9.1 built, 0 MB; remaining: etcd, kind, kube-apiserver and 2 more" in shown(screen)
    assert "etcd 3.6.16 built, 0 MB; remaining: kind, kube-apiserver, kubelet, kubectl" in shown(screen)


def test_an_unknown_program_is_refused_first(fake_go: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown program 'kubeletd'"):
        ensure(lock_for("1.37"), ["kubectl", "kubeletd"], progress=Silent())

    assert not fake_go.runs
    assert not (tmp_path / "all-caches").exists()


def test_a_folder_is_used_before_other_sources(fake_go: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kubelet").write_text("#!/bin/sh\necho Kubernetes v1.37.9\n")
    (mine / "kubelet").chmod(0o755)

    found = ensure(
        lock_for("1.37"), ["kubelet", "etcd"], progress=Silent(), sources=[f"{mine},build"], cache=tmp_path / "c"
    )

    assert found["kubelet"] == mine / "kubelet"
    assert found["etcd"].is_relative_to(tmp_path / "c")


def test_the_default_order_is_cache_download_build_system(tmp_path: Path) -> None:
    assert [source.name for source in choose_sources(None)] == ["cache", "download", "build", "system"]
    assert [source.name for source in choose_sources([str(tmp_path)])] == [
        str(tmp_path),
        "cache",
        "download",
        "build",
        "system",
    ]


def test_named_sources_are_used_in_their_order(tmp_path: Path) -> None:
    sources = choose_sources(["build,download", str(tmp_path)])

    assert [source.name for source in sources] == [str(tmp_path), "cache", "build", "download"]
    assert sources[0] == Folder(tmp_path)
    assert sources[1] == Cached(("download", "build"))


@pytest.mark.parametrize(
    ("value", "message"),
    [("buidl", "did you mean build"), ("/no/such/folder", "no such folder"), ("./x", "no such folder")],
)
def test_an_unknown_source_is_refused(value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_sources([value])


def test_an_unwritable_cache_is_an_error_with_a_hint(fake_go: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(TestbedError, match=r"(?s)cannot be used: Not a directory.*DRA_TESTBED_CACHE"):
        ensure(lock_for("1.37"), ["kind"], progress=Silent(), sources=["build"], cache=tmp_path / "file")


def test_the_inventory_lists_cached_programs(fake_go: Any) -> None:
    lock = lock_for("1.37")
    kind = ensure(lock, ["kind"], progress=Silent(), sources=["build"])["kind"]

    held = inventory(lock)

    assert held["kubelet"] is None
    assert held["kind"] is not None
    assert held["kind"][0] == kind
    assert (held["kind"][1].origin, held["kind"][1].version) == ("build", "0.33.0")


@pytest.fixture
def ending() -> Iterator[list[ProcessId]]:
    """Kill the processes in this list after the test."""
    started: list[ProcessId] = []
    yield started
    for each in started:
        process.kill(each)


def test_two_processes_share_the_work(fake_go: Any, tmp_path: Path, ending: list[ProcessId]) -> None:
    fake_go.waits()
    ending.append(run_elsewhere(tmp_path / "first"))
    assert eventually_true(lambda: len(fake_go.runs) == 1, SOON)
    ending.append(run_elsewhere(tmp_path / "second"))
    waited = eventually_true(lambda: "another process fetches" in (tmp_path / "second").read_text(), SOON)
    fake_go.release()
    fake_go.release()
    ended = eventually_true(lambda: not any(process.alive(each) for each in ending), SOON)

    assert waited
    assert ended
    assert len(fake_go.runs) == 1
    assert "kube-scheduler 1.37.1 built" in (tmp_path / "first").read_text()
    assert "built" not in (tmp_path / "second").read_text()
    # The first program may already be cached when the second process checks.
    assert re.search("✓ kubernetes 1.37.1: (kubelet, )?kube-scheduler", (tmp_path / "second").read_text())


def test_killing_a_build_loses_only_the_unfinished_program(
    fake_go: Any, tmp_path: Path, ending: list[ProcessId], monkeypatch: pytest.MonkeyPatch, screen: Progress
) -> None:
    fake_go.waits()
    ending.append(run_elsewhere(tmp_path / "killed"))
    assert eventually_true(lambda: "kubelet 1.37.1 built" in (tmp_path / "killed").read_text(), SOON)
    process.kill(ending[0])
    stale_folders = list((tmp_path / "all-caches/binaries/.scratch").iterdir())
    monkeypatch.delenv("FAKE_GO_WAITS")

    ensure(lock_for("1.37"), ["kubelet", "kube-scheduler"], progress=screen, sources=["build"])

    assert stale_folders
    assert not list((tmp_path / "all-caches/binaries/.scratch").iterdir())
    assert "1 of 2 available" in shown(screen)
    assert fake_go.runs[1].endswith("/ k8s.io/kubernetes/cmd/kube-scheduler")


def test_a_download_without_a_digest_in_the_lock_file_is_reported_once(tmp_path: Path) -> None:
    shown, lock = io.StringIO(), lock_for("1.37")
    programs = [lock.program(name) for name in ("kubelet", "kubectl")]
    fetcher = Fetcher(lock, programs, [], BinaryCache(tmp_path / "cache"), Progress(Console(file=shown, width=300)))
    for each in programs:
        (tmp_path / each.name).write_text("program")
        fetcher._add_to_cache("download", each, tmp_path / each.name, "")
    assert shown.getvalue().count("the checksum of kubernetes is from the same site as the file") == 1
