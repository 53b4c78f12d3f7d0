from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.binaries import debian, sources
from testbed.binaries.sources import Cached, Folder, System, Unavailable
from testbed.errors import TestbedError, UsageError


def script(path: Path, says: str, *, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(mode)
    return path


def test_a_folder_is_used_where_it_lies(tmp_path: Path, asked: Callable[..., Any]) -> None:
    kubelet = script(tmp_path / "kubelet", "Kubernetes v1.37.1")
    ptp = script(tmp_path / "cni/ptp", "CNI ptp plugin v1.9.1")
    etcd = script(tmp_path / "bin/etcd", "etcd Version: 3.6.16")
    ask = asked("kubelet", "cni-ptp", "etcd", "runc")

    with pytest.raises(Unavailable, match="not in the folder: runc"):
        Folder(tmp_path).supply(ask.order)

    assert ask.used == {"kubelet": kubelet, "cni-ptp": ptp, "etcd": etcd}
    assert ask.remarks == ["", "", ""]


def test_another_patch_in_a_folder_is_believed_and_told(tmp_path: Path, asked: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.37.5-mine")
    ask = asked("kubelet")

    Folder(tmp_path).supply(ask.order)

    assert ask.remarks == ["says 'Kubernetes v1.37.5-mine' where 1.37.1 is locked"]


def test_another_minor_in_a_folder_is_refused(tmp_path: Path, asked: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.36.4")

    with pytest.raises(UsageError, match=r"'Kubernetes v1\.36\.4', but Kubernetes 1\.37 is wanted"):
        Folder(tmp_path).supply(asked("kubelet").order)


def test_a_file_that_is_not_executable_is_refused(tmp_path: Path, asked: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.37.1", mode=0o644)

    with pytest.raises(UsageError, match=r"(?s)is not executable.*chmod \+x"):
        Folder(tmp_path).supply(asked("kubelet").order)


def test_a_file_that_does_not_run_here_is_refused(tmp_path: Path, asked: Callable[..., Any]) -> None:
    (tmp_path / "kubelet").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "kubelet").chmod(0o755)

    with pytest.raises(UsageError, match="does not run here"):
        Folder(tmp_path).supply(asked("kubelet").order)


def test_the_cache_gives_what_is_whole_and_tells_of_what_is_damaged(asked: Callable[..., Any]) -> None:
    ask = asked("kubelet", "etcd", "ctr")
    for program in ask.programs[:2]:
        with ask.store.scratch() as scratch:
            (scratch / "file").write_bytes(b"content")
            kept = ask.store.add(program, "download", scratch / "file")
    kept.write_bytes(b"")

    with pytest.raises(Unavailable, match=r"damaged: .*etcd has 0 bytes instead of 7") as told:
        Cached().supply(ask.order)

    assert list(ask.used) == ["kubelet"]
    assert not told.value.expected


def test_an_empty_cache_is_nothing_to_talk_about(asked: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable) as told:
        Cached().supply(asked("kubelet").order)

    assert told.value.expected


def test_the_distributions_package_gives_the_program_and_its_own_version(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(names: list[str], into: Path) -> dict[str, str]:
        script(into / "usr/sbin/runc", "runc version 1.1.5")
        return {"runc": "1.1.5+ds1"}

    monkeypatch.setattr(debian, "fetch_packages", fetch)
    ask = asked("runc")

    System().supply(ask.order)

    assert ask.store.entry(ask.programs[0], "download").version == "1.1.5+ds1"


def test_a_package_whose_program_does_not_run_here_is_refused(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "fetch_packages", lambda names, into: {"runc": "1.1.5"})

    with pytest.raises(Unavailable, match=r"runc 1\.1\.5 of the distribution does not run here"):
        System().supply(asked("runc").order)


def test_what_apt_says_becomes_the_reason_and_its_cure(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(names: list[str], into: Path) -> dict[str, str]:
        raise TestbedError("there is no apt-get here", hint="use Debian")

    monkeypatch.setattr(debian, "fetch_packages", fail)

    with pytest.raises(Unavailable, match="no apt-get") as refused:
        System().supply(asked("runc").order)

    assert refused.value.cure == "use Debian"


def test_only_runc_is_taken_from_the_distribution(asked: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable, match="no package of the distribution") as refused:
        System().supply(asked("kubelet").order)

    assert refused.value.expected


def test_a_program_that_says_nothing_is_not_believed(tmp_path: Path, asked: Callable[..., Any]) -> None:
    silent = tmp_path / "kubelet"
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)

    assert sources.reported_version(asked("kubelet").programs[0], silent) is None
