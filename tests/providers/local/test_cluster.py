"""What a local cluster runs on its nodes, with nodes that only record commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.providers.local.cluster import LocalCluster
from testbed.waiting import set_patience


@dataclass
class Node:
    folder: Path
    told: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)

    @property
    def machine(self) -> Any:
        return SimpleNamespace(folder=self.folder)

    def run(self, *argv: str, timeout: float) -> None:
        self.told.append((argv, timeout))
        self.archives = [path.name for path in (self.folder / "disk/var/lib/containerd").iterdir()]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    (tmp_path / "disk/var/lib/containerd").mkdir(parents=True)
    (tmp_path / "image.tar").write_text("an archive")
    return Node(tmp_path)


def load(node: Node, *, use_overlay: bool = True) -> None:
    cluster: Any = SimpleNamespace(settings=SimpleNamespace(use_overlay=use_overlay))
    LocalCluster.load_image_on(cluster, node, node.folder / "image.tar")  # type: ignore[arg-type] # as above


def test_an_image_is_imported_through_the_nodes_folder_and_removed_from_there_afterwards(node: Node) -> None:
    load(node)

    assert node.archives == ["image.tar"]
    assert node.told[0][0][-1] == "/var/lib/containerd/image.tar"
    assert list((node.folder / "disk/var/lib/containerd").iterdir()) == []


@pytest.mark.parametrize(("use_overlay", "snapshotter"), [(True, "overlayfs"), (False, "native")])
def test_an_image_is_imported_with_the_nodes_snapshotter(node: Node, use_overlay: bool, snapshotter: str) -> None:
    load(node, use_overlay=use_overlay)

    argv = node.told[0][0]
    assert argv[argv.index("--snapshotter") + 1] == snapshotter


def test_the_patience_factor_extends_the_timeout_of_an_import(node: Node) -> None:
    set_patience(10)
    try:
        load(node)
    finally:
        set_patience(1)

    assert node.told[0][1] == 1200
