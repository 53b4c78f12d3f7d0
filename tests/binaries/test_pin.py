"""Digests of downloads, locked from a server that serves upstream's tree."""

from __future__ import annotations

import hashlib
import io
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from testbed import folders
from testbed.binaries import ensure, lock_for
from testbed.binaries.pin import pin
from testbed.cli.binaries import group
from testbed.errors import TestbedError
from testbed.progress import Progress, Silent

KUBELET = "dl.k8s.io/v1.37.1/bin/linux/{}/kubelet"
CNI = "github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz"


@pytest.fixture(autouse=True)
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a copy of the lock files, and a cache of its own."""
    copy = tmp_path / "versions"
    shutil.copytree(folders.data("versions"), copy, ignore=shutil.ignore_patterns("go"))
    (copy / "digests.yaml").write_text("{}\n")
    monkeypatch.setattr(folders, "data", lambda _: copy)
    monkeypatch.setattr("testbed.binaries.cache.host_arch", lambda: "amd64")
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    return copy


def locked(versions: Path) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((versions / "digests.yaml").read_text())
    return found


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_digests_of_both_architectures_are_written_with_the_official_urls(site: Any, versions: Path) -> None:
    site.publish(KUBELET.format("amd64"), b"intel")
    site.publish(KUBELET.format("arm64"), b"arm")

    done = CliRunner().invoke(group, ["pin", "kubelet"], catch_exceptions=False)

    assert locked(versions) == {
        f"https://{KUBELET.format('amd64')}": sha256(b"intel"),
        f"https://{KUBELET.format('arm64')}": sha256(b"arm"),
    }
    assert f"2 digests added, 0 were there: {versions / 'digests.yaml'}" in done.output
    assert not list((versions.parent / "cache/binaries/.parts").iterdir())


def test_a_file_that_a_site_replaces_with_its_checksum_is_refused(site: Any) -> None:
    site.publish(KUBELET.format("amd64"), b"released")
    pin(lock_for("1.37"), ["kubelet"], progress=Silent(), arches=["amd64"])
    site.publish(KUBELET.format("amd64"), b"replaced")

    with pytest.raises(TestbedError, match=rf"wrong checksum, expected sha256 {sha256(b'released')}"):
        ensure(lock_for("1.37"), ["kubelet"], progress=Silent(), sources=["download"])


@pytest.mark.parametrize("is_pinned", [True, False])
def test_only_a_download_without_a_digest_is_reported(is_pinned: bool, site: Any) -> None:
    screen = io.StringIO()
    site.publish(KUBELET.format("amd64"), b"released")
    if is_pinned:
        pin(lock_for("1.37"), ["kubelet"], progress=Silent(), arches=["amd64"])

    ensure(lock_for("1.37"), ["kubelet"], progress=Progress(Console(file=screen, width=300)), sources=["download"])

    assert ("the checksum of kubernetes is from the same site" in screen.getvalue()) is not is_pinned


def test_an_archive_is_downloaded_once_and_what_is_locked_never_again(site: Any, versions: Path) -> None:
    site.publish(CNI, b"an archive")
    first = pin(lock_for("1.37"), ["cni-ptp", "cni-bridge"], progress=Silent(), arches=["amd64"])
    again = pin(lock_for("1.37"), ["cni-ptp"], progress=Silent(), arches=["amd64"])

    assert (list(first.added), first.kept) == ([f"https://{CNI}"], 0)
    assert (list(again.added), again.kept) == ([], 1)
    assert site.paths.count(f"/{CNI}") == 1


def test_a_file_that_differs_from_its_published_checksum_is_not_locked(site: Any, versions: Path) -> None:
    site.publish(KUBELET.format("amd64"), b"released")
    site.publish(KUBELET.format("arm64"), b"damaged", digest="f" * 64)

    with pytest.raises(TestbedError, match="wrong checksum"):
        pin(lock_for("1.37"), ["kubelet"], progress=Silent())

    assert list(locked(versions)) == [f"https://{KUBELET.format('amd64')}"]


def test_nothing_is_locked_from_a_mirror_that_others_can_change_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_MIRROR", "http://mirror.example")

    with pytest.raises(TestbedError, match=r"the mirror http://mirror\.example is not https"):
        pin(lock_for("1.37"), ["kubelet"], progress=Silent())


def test_a_lock_file_that_cannot_be_written_is_an_error(
    site: Any, versions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    site.publish(KUBELET.format("amd64"), b"released")
    monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(TestbedError, match=r"cannot write .*digests\.yaml: Permission denied"):
        pin(lock_for("1.37"), ["kubelet"], progress=Silent(), arches=["amd64"])
