"""Where nft comes from, with a folder in place of the cache and packages that contain scripts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from testbed import process
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.progress import Progress, Silent
from testbed.providers.local import components
from testbed.providers.local.provider import LocalProvider
from testbed.providers.local.services import nft

PACKAGES = ["gcc-12-base", "libc6", "libgcc-s1", "libnftables1", "libtinfo6", "nftables"]


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a host without nft and with an empty cache, whose packages are written instead of fetched."""
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nft, "_PATH", str(tmp_path / "programs"))
    monkeypatch.setattr(nft, "can_unpack", lambda: True)
    monkeypatch.setattr(debian, "with_dependencies", lambda _names: PACKAGES)

    def fetch(names: Sequence[str], into: Path) -> None:
        (tmp_path / "fetched").write_text(" ".join(names))
        for file, content in {
            "usr/sbin/nft": '#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n',
            "usr/lib/x86_64-linux-gnu/libnftables.so.1.1.0": "library",
            "usr/lib/x86_64-linux-gnu/plugins/other.so": "no library",
        }.items():
            (into / file).parent.mkdir(parents=True, exist_ok=True)
            (into / file).write_text(content)
            (into / file).chmod(0o755)
        (into / "usr/lib/x86_64-linux-gnu/libnftables.so.1").symlink_to("libnftables.so.1.1.0")

    monkeypatch.setattr(debian, "fetch_packages", fetch)
    return tmp_path


def test_nft_of_the_host_is_preferred(bare_host: Path) -> None:
    (bare_host / "programs").mkdir()
    (bare_host / "programs/nft").write_text("#!/bin/sh\n")
    (bare_host / "programs/nft").chmod(0o755)

    found = nft.find(Silent())

    assert found == bare_host / "programs/nft"
    assert not nft.is_unpacked(found)
    assert not (bare_host / "fetched").exists()


def test_the_package_is_unpacked_once_with_its_libraries_but_not_the_c_library(bare_host: Path) -> None:
    found = nft.find(Silent())
    (bare_host / "fetched").rename(bare_host / "first")

    assert found
    assert nft.is_unpacked(found)
    assert nft.find(Silent()) == found == nft.available()
    assert not (bare_host / "fetched").exists()
    assert (bare_host / "first").read_text() == "libnftables1 libtinfo6 nftables"
    assert sorted(path.name for path in (found.parent / "lib").iterdir()) == [
        "libnftables.so.1",
        "libnftables.so.1.1.0",
    ]
    assert process.run([found, "list", "tables"]).stdout == f"{found.parent}/lib list tables\n"
    assert [path.name for path in found.parent.parent.iterdir()] == ["nft"]


def test_a_package_that_cannot_be_fetched_is_reported(bare_host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_names: Sequence[str], _into: Path) -> None:
        raise TestbedError("apt-get download failed: no network")

    monkeypatch.setattr(debian, "fetch_packages", fail)
    shown = io.StringIO()

    assert nft.find(Progress(Console(file=shown, width=300))) is None
    assert "note: the package nftables could not be unpacked: apt-get download failed: no network" in shown.getvalue()
    assert nft.available() is None


def test_a_node_gets_the_unpacked_nft_at_its_path_and_on_the_search_path(bare_host: Path) -> None:
    found = nft.find(Silent())
    assert found
    programs = {name: Path("/programs") / name for name in LocalProvider().programs()}

    lines = components.node_programs({**programs, "nft": found}).splitlines()

    assert f"{found.parent} {found.parent}" in lines
    assert f"{found} /usr/local/sbin/nft" in lines
    assert not any("nft" in line for line in components.node_programs(programs).splitlines())
