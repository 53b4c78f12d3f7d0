"""What a local cluster runs on its nodes, with machines that only record commands."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.providers.local.cluster import LocalCluster
from testbed.waiting import set_patience


@dataclass
class Machine:
    told: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    read: bytes = b""

    def run(self, *argv: str, timeout: float, stdin: int) -> None:
        self.told.append((argv, timeout))
        self.read = os.read(stdin, 100)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(stdin, b"replaced")


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "image.tar").write_text("an archive")
    return tmp_path / "image.tar"


def load(machine: Machine, archive: Path, *, use_overlay: bool = True) -> None:
    cluster: Any = SimpleNamespace(settings=SimpleNamespace(use_overlay=use_overlay))
    node: Any = SimpleNamespace(machine=machine)
    LocalCluster.load_image_on(cluster, node, archive)


def test_a_node_gets_the_content_of_an_image_but_not_the_cached_file(machine: Machine, archive: Path) -> None:
    load(machine, archive)

    assert machine.told[0][0][-1] == "-"
    assert machine.read == b"an archive"


@pytest.mark.parametrize(("use_overlay", "snapshotter"), [(True, "overlayfs"), (False, "native")])
def test_an_image_is_imported_with_the_nodes_snapshotter(
    machine: Machine, archive: Path, use_overlay: bool, snapshotter: str
) -> None:
    load(machine, archive, use_overlay=use_overlay)

    argv = machine.told[0][0]
    assert argv[argv.index("--snapshotter") + 1] == snapshotter


def test_the_patience_factor_extends_the_timeout_of_an_import(machine: Machine, archive: Path) -> None:
    set_patience(10)
    try:
        load(machine, archive)
    finally:
        set_patience(1)

    assert machine.told[0][1] == 1200
