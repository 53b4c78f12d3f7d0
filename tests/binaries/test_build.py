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

SOON = Budget("handed over", 10, "the watcher looks twice a second")


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
        ("go.etcd.io/etcd/server/v3", "server"),
        ("sigs.k8s.io/kind", "kind"),
    ],
)
def test_the_name_of_what_go_makes_is_known(package: str, name: str) -> None:
    assert executable_name(package) == name


def test_programs_of_one_module_are_built_by_one_run(fake_go: Any, asked: Callable[..., Any]) -> None:
    ask = asked("kube-apiserver", "kubelet")

    BuildSource().supply(ask.order)

    assert {name: content.split()[-1] for name, content in ask.kept.items()} == {
        "kube-apiserver": b"kube-apiserver",
        "kubelet": b"kubelet",
    }
    assert len(fake_go.runs) == 1
    assert fake_go.runs[0].endswith("k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubelet")


def test_etcd_gets_its_own_name_though_go_calls_it_server(fake_go: Any, asked: Callable[..., Any]) -> None:
    ask = asked("etcd")

    BuildSource().supply(ask.order)

    assert ask.store.look(ask.programs[0])[0].name == "etcd"


def test_the_build_is_verified_stamped_and_static(fake_go: Any, asked: Callable[..., Any]) -> None:
    BuildSource().supply(asked("containerd").order)

    run = fake_go.runs[0]
    assert "-mod=readonly -trimpath" in run
    assert "-tags no_btrfs no_devmapper no_zfs" in run
    assert "-X github.com/containerd/containerd/v2/version.Version=v2.3.7" in run
    assert fake_go.environment["CGO_ENABLED"] == "0"


def test_what_the_user_set_for_go_cannot_change_the_outcome(
    fake_go: Any, asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "auto",
        "GOWORK": "/w",
        "GOPROXY": "https://mine",
    }.items():
        monkeypatch.setenv(name, value)

    BuildSource().supply(asked("kind").order)

    env = fake_go.environment
    assert (env["GOFLAGS"], env["GOTOOLCHAIN"], env["GOWORK"]) == ("", "local", "off")
    assert env["GOPROXY"] == "https://mine"


def test_the_build_happens_in_a_copy_and_leaves_nothing(fake_go: Any, asked: Callable[..., Any]) -> None:
    ask = asked("kind")

    BuildSource().supply(ask.order)

    assert not fake_go.runs[0].startswith(str(folders.data("versions")))
    assert not list((ask.store.root / ".scratch").iterdir())


def test_a_program_is_handed_over_while_the_next_is_still_in_work(fake_go: Any, asked: Callable[..., Any]) -> None:
    fake_go.waits()
    ask = asked("kubelet", "kube-scheduler")
    building = threading.Thread(target=BuildSource().supply, args=[ask.order])
    building.start()

    first_came = eventually_true(lambda: list(ask.kept) == ["kubelet"], SOON)
    fake_go.let_go()
    fake_go.let_go()
    building.join()

    assert first_came
    assert list(ask.kept) == ["kubelet", "kube-scheduler"]


def test_trouble_with_the_cache_ends_the_build(
    fake_go: Any, asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asked("kubelet")

    def full(*args: object, **kwargs: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(ask.store), "add", full)

    with pytest.raises(OSError, match="No space left"):
        BuildSource().supply(ask.order)


@pytest.mark.parametrize(
    ("output", "cure"),
    [
        ("go: k8s.io/x@v1: dial tcp: lookup nowhere: no such host", "module proxy"),
        ("/tmp/x: no space left on device", "make room"),
        ("verifying x@v1: checksum mismatch", ""),
    ],
)
def test_the_reason_of_a_failed_build_is_told_with_its_cure(
    output: str, cure: str, fake_go: Any, asked: Callable[..., Any]
) -> None:
    fake_go.fails(output)

    with pytest.raises(Unavailable) as failed:
        BuildSource().supply(asked("kubelet").order)

    assert str(failed.value) == output
    assert cure in failed.value.cure


def test_runc_is_not_built_without_libseccomp(
    fake_go: Any, on_path: Callable[[str, str], Path], asked: Callable[..., Any]
) -> None:
    on_path("gcc", "#!/bin/sh\n")
    on_path("pkg-config", "#!/bin/sh\nexit 1\n")

    with pytest.raises(Unavailable, match="missing: libseccomp-dev") as refused:
        BuildSource().supply(asked("runc").order)

    assert refused.value.cure == "apt install libseccomp-dev"
    assert not fake_go.runs


def test_runc_is_built_with_c_where_all_is_there(
    fake_go: Any, on_path: Callable[[str, str], Path], asked: Callable[..., Any]
) -> None:
    on_path("gcc", "#!/bin/sh\n")
    on_path("pkg-config", "#!/bin/sh\nexit 0\n")

    BuildSource().supply(asked("runc").order)

    assert fake_go.environment["CGO_ENABLED"] == "1"
    assert "-tags seccomp" in fake_go.runs[0]


def test_a_host_without_any_c_is_told_all_that_it_lacks(
    fake_go: Any, asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(process, "run", lambda *args, **kwargs: Completed((), 1, "", ""))

    with pytest.raises(Unavailable) as refused:
        BuildSource().supply(asked("runc").order)

    assert refused.value.cure == "apt install gcc pkg-config libseccomp-dev"
