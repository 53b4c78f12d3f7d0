from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.binaries import debian, sources
from testbed.binaries.sources import Cached, Folder, System, Unavailable
from testbed.errors import TestbedError, UsageError


def script(path: Path, output: str, *, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(mode)
    return path


def test_programs_of_a_folder_are_used_in_place(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    kubelet = script(tmp_path / "kubelet", "Kubernetes v1.37.1")
    ptp = script(tmp_path / "cni/ptp", "CNI ptp plugin v1.9.1")
    etcd = script(tmp_path / "bin/etcd", "etcd Version: 3.6.16")
    recorded = record_request("kubelet", "cni-ptp", "etcd", "runc")

    with pytest.raises(Unavailable, match="not in the folder: runc"):
        Folder(tmp_path).fetch(recorded.request)

    assert recorded.used == {"kubelet": kubelet, "cni-ptp": ptp, "etcd": etcd}
    assert recorded.remarks == ["", "", ""]


def test_another_patch_in_a_folder_is_used_with_a_remark(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.37.5-mine")
    recorded = record_request("kubelet")

    Folder(tmp_path).fetch(recorded.request)

    assert recorded.remarks == ["reports 'Kubernetes v1.37.5-mine', but 1.37.1 is locked"]


def test_another_minor_in_a_folder_is_refused(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.36.4")

    with pytest.raises(UsageError, match=r"'Kubernetes v1\.36\.4', but Kubernetes 1\.37 is requested"):
        Folder(tmp_path).fetch(record_request("kubelet").request)


def test_a_file_that_is_not_executable_is_refused(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    script(tmp_path / "kubelet", "Kubernetes v1.37.1", mode=0o644)

    with pytest.raises(UsageError, match=r"(?s)is not executable.*chmod \+x"):
        Folder(tmp_path).fetch(record_request("kubelet").request)


def test_a_file_that_does_not_run_here_is_refused(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    (tmp_path / "kubelet").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "kubelet").chmod(0o755)

    with pytest.raises(UsageError, match="does not run here"):
        Folder(tmp_path).fetch(record_request("kubelet").request)


def test_intact_programs_of_the_cache_are_used_and_damaged_ones_reported(record_request: Callable[..., Any]) -> None:
    recorded = record_request("kubelet", "etcd", "ctr")
    for program in recorded.programs[:2]:
        with recorded.store.scratch() as scratch:
            (scratch / "file").write_bytes(b"content")
            path = recorded.store.add(program, "download", scratch / "file")
    path.write_bytes(b"")

    with pytest.raises(Unavailable, match=r"damaged: .*etcd has 0 bytes instead of 7") as unavailable:
        Cached().fetch(recorded.request)

    assert list(recorded.used) == ["kubelet"]
    assert not unavailable.value.expected


def test_an_empty_cache_is_expected(record_request: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable) as unavailable:
        Cached().fetch(record_request("kubelet").request)

    assert unavailable.value.expected


def test_a_program_of_a_package_is_cached_with_its_version(
    record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(names: list[str], into: Path) -> dict[str, str]:
        script(into / "usr/sbin/runc", "runc version 1.1.5")
        return {"runc": "1.1.5+ds1"}

    monkeypatch.setattr(debian, "fetch_packages", fetch)
    recorded = record_request("runc")

    System().fetch(recorded.request)

    assert recorded.store.entry(recorded.programs[0], "download").version == "1.1.5+ds1"


def test_a_package_whose_program_does_not_run_here_is_refused(
    record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "fetch_packages", lambda names, into: {"runc": "1.1.5"})

    with pytest.raises(Unavailable, match=r"runc 1\.1\.5 of the distribution does not run here"):
        System().fetch(record_request("runc").request)


def test_an_error_of_apt_becomes_reason_and_hint(
    record_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(names: list[str], into: Path) -> dict[str, str]:
        raise TestbedError("apt-get was not found on this host", hint="use Debian")

    monkeypatch.setattr(debian, "fetch_packages", fail)

    with pytest.raises(Unavailable, match="apt-get was not found") as refused:
        System().fetch(record_request("runc").request)

    assert refused.value.hint == "use Debian"


def test_only_runc_is_taken_from_the_distribution(record_request: Callable[..., Any]) -> None:
    with pytest.raises(Unavailable, match="no package of the distribution") as refused:
        System().fetch(record_request("kubelet").request)

    assert refused.value.expected


def test_a_program_that_prints_no_version_is_refused(tmp_path: Path, record_request: Callable[..., Any]) -> None:
    silent = tmp_path / "kubelet"
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)

    assert sources.reported_version(record_request("kubelet").programs[0], silent) is None
