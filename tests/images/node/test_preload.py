from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from testbed.errors import CommandFailed, TestbedError
from testbed.images.node.preload import preload
from testbed.images.tarball import Member

# Listens on the configured socket, writes folders that are kept and one that is not, and runs until SIGTERM.
CONTAINERD = f"""
exec {sys.executable} - "$2" <<'END'
import pathlib, signal, socket, sys, tomllib
settings = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())
root = pathlib.Path(settings["root"])
for path in ("io.containerd.content.v1.content/blobs/sha256/1", "io.containerd.metadata.v1.bolt/meta.db", "other/uuid"):
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text(path)
socket.socket(socket.AF_UNIX).bind(settings["grpc"]["address"])
signal.signal(signal.SIGTERM, lambda *_: ((root / "io.containerd.metadata.v1.bolt/closed").write_text("well"), sys.exit()))
signal.pause()
END
"""


@pytest.fixture
def programs(tmp_path: Path, program: Callable[[str, str], Path]) -> dict[str, Path]:
    ctr = f'echo "$@" >>{tmp_path}/asked; case "$*" in *--quiet) echo registry/etcd:3; echo registry/pause:1 ;; esac'
    return {"containerd": program("containerd", CONTAINERD), "ctr": program("ctr", ctr)}


def _run(programs: Mapping[str, Path], tmp_path: Path, *names: str) -> dict[str, Member]:
    scratch = tmp_path / "scratch"
    scratch.mkdir(parents=True)
    return {member.path: member for member in preload(programs, [tmp_path / "etcd.tar"], names, scratch)}


def test_only_the_content_store_and_the_database_are_kept(programs: dict[str, Path], tmp_path: Path) -> None:
    members = _run(programs, tmp_path, "registry/etcd:3", "registry/pause:1")

    files = {path for path, member in members.items() if member.content}
    folder = "var/lib/containerd"
    assert files == {
        f"{folder}/io.containerd.content.v1.content/blobs/sha256/1",
        f"{folder}/io.containerd.metadata.v1.bolt/meta.db",
        f"{folder}/io.containerd.metadata.v1.bolt/closed",
    }
    assert members[folder].mode == 0o711


def test_images_are_imported_and_pinned_but_not_unpacked(programs: dict[str, Path], tmp_path: Path) -> None:
    _run(programs, tmp_path, "registry/etcd:3")

    first = (tmp_path / "asked").read_text().splitlines()[0]
    assert "--namespace k8s.io images import" in first
    assert "--no-unpack --label io.cri-containerd.pinned=pinned" in first
    assert first.endswith("etcd.tar")


def test_an_image_that_is_missing_after_the_import_is_an_error(programs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="missing in containerd after the import: registry/coredns:1"):
        _run(programs, tmp_path, "registry/etcd:3", "registry/coredns:1")


def test_the_error_of_a_containerd_that_ends_has_its_log(
    programs: dict[str, Path], tmp_path: Path, program: Callable[[str, str], Path]
) -> None:
    programs["containerd"] = program("containerd", "echo the database is locked; exit 1")

    with pytest.raises(CommandFailed, match="the database is locked"):
        _run(programs, tmp_path)


def test_containerd_is_terminated_gracefully_when_an_import_fails(
    programs: dict[str, Path], tmp_path: Path, program: Callable[[str, str], Path]
) -> None:
    programs["ctr"] = program("ctr", "exit 1")

    with pytest.raises(CommandFailed):
        _run(programs, tmp_path)

    closed = tmp_path / "scratch/containerd/io.containerd.metadata.v1.bolt/closed"
    assert closed.read_text() == "well"


def test_a_cache_path_that_is_too_long_for_a_socket_is_an_error_with_a_hint(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(TestbedError, match=r"(?s)is too long for the path of a socket.*DRA_TESTBED_CACHE"):
        _run(programs, tmp_path / ("deep" * 30))
