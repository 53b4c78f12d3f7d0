from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import folders, process
from testbed.binaries.build import BuildSource, executable_name
from testbed.binaries.sources import Unavailable
from testbed.process import Completed
from testbed.waiting import Budget, eventually_true

SOON = Budget("cached", 10, "the watcher checks twice a second")


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
        ("go.etcd.io/etcd/server/v3", "server"),
        ("sigs.k8s.io/kind", "kind"),
    ],
)
def test_the_name_of_an_executable_is_derived_from_its_package(package: str, name: str) -> None:
    assert executable_name(package) == name


def test_programs_of_one_module_are_built_by_one_run(fake_go: Any, record_request: Callable[..., Any]) -> None:
    recorded = record_request("kube-apiserver", "kubelet")

    BuildSource().fetch(recorded.request)

    assert {name: content.split()[-1] for name, content in recorded.cached.items()} == {
        "kube-apiserver": b"kube-apiserver",
        "kubelet": b"kubelet",
    }
    assert len(fake_go.runs) == 1
    assert fake_go.runs[0].endswith("k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubelet")


def test_etcd_is_cached_under_its_own_name(fake_go: Any, record_request: Callable[..., Any]) -> None:
    recorded = record_request("etcd")

    BuildSource().fetch(recorded.request)

    assert recorded.store.find(recorded.programs[0])[0].name == "etcd"


def test_a_build_has_verified_modules_a_version_and_no_cgo(fake_go: Any, record_request: Callable[..., Any]) -> None:
    BuildSource().fetch(record_request("containerd").request)

    run = fake_go.runs[0]
    assert "-mod=readonly -trimpath" in run
    assert "-tags no_btrfs no_devmapper no_zfs" in run
    assert "-X github.com/containerd/containerd/v2/version.Version=v2.3.7" in run
    assert fake_go.environment["CGO_ENABLED"] == "0"


def test_the_users_go_settings_do_not_change_the_result(
    fake_go: Any, record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "auto",
        "GOWORK": "/w",
        "GOPROXY": "https://mine",
    }.items():
        monkeypatch.setenv(name, value)

    BuildSource().fetch(record_request("kind").request)

    env = fake_go.environment
    assert (env["GOFLAGS"], env["GOTOOLCHAIN"], env["GOWORK"]) == ("", "local", "off")
    assert env["GOPROXY"] == "https://mine"


def test_a_build_runs_in_a_temporary_copy(fake_go: Any, record_request: Callable[..., Any]) -> None:
    recorded = record_request("kind")

    BuildSource().fetch(recorded.request)

    assert not fake_go.runs[0].startswith(str(folders.data("versions")))
    assert not list((recorded.store.root / ".scratch").iterdir())


def test_a_program_is_cached_while_the_next_one_is_built(fake_go: Any, record_request: Callable[..., Any]) -> None:
    fake_go.waits()
    recorded = record_request("kubelet", "kube-scheduler")
    building = threading.Thread(target=BuildSource().fetch, args=[recorded.request])
    building.start()

    first_cached = eventually_true(lambda: list(recorded.cached) == ["kubelet"], SOON)
    fake_go.release()
    fake_go.release()
    building.join()

    assert first_cached
    assert list(recorded.cached) == ["kubelet", "kube-scheduler"]


def test_an_error_of_the_cache_ends_the_build(
    fake_go: Any, record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record_request("kubelet")

    def full(*args: object, **kwargs: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(recorded.store), "add", full)

    with pytest.raises(OSError, match="No space left"):
        BuildSource().fetch(recorded.request)


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("go: k8s.io/x@v1: dial tcp: lookup nowhere: no such host", "module proxy"),
        ("/tmp/x: no space left on device", "free disk space"),
        ("verifying x@v1: checksum mismatch", ""),
    ],
)
def test_a_failed_build_has_reason_and_hint(
    output: str, hint: str, fake_go: Any, record_request: Callable[..., Any]
) -> None:
    fake_go.fails(output)

    with pytest.raises(Unavailable) as failed:
        BuildSource().fetch(record_request("kubelet").request)

    assert str(failed.value) == output
    assert hint in failed.value.hint


def test_runc_is_not_built_without_libseccomp(
    fake_go: Any, on_path: Callable[[str, str], Path], record_request: Callable[..., Any]
) -> None:
    on_path("gcc", "#!/bin/sh\n")
    on_path("pkg-config", "#!/bin/sh\nexit 1\n")

    with pytest.raises(Unavailable, match="missing: libseccomp-dev") as refused:
        BuildSource().fetch(record_request("runc").request)

    assert refused.value.hint == "apt install libseccomp-dev"
    assert not fake_go.runs


def test_runc_is_built_with_cgo_if_all_libraries_are_installed(
    fake_go: Any, on_path: Callable[[str, str], Path], record_request: Callable[..., Any]
) -> None:
    on_path("gcc", "#!/bin/sh\n")
    on_path("pkg-config", "#!/bin/sh\nexit 0\n")

    BuildSource().fetch(record_request("runc").request)

    assert fake_go.environment["CGO_ENABLED"] == "1"
    assert "-tags seccomp" in fake_go.runs[0]


def test_all_missing_packages_are_listed(
    fake_go: Any, record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(process, "run", lambda *args, **kwargs: Completed((), 1, "", ""))

    with pytest.raises(Unavailable) as refused:
        BuildSource().fetch(record_request("runc").request)

    assert refused.value.hint == "apt install gcc pkg-config libseccomp-dev"
