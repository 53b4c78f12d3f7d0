"""What a kind node gets before it is rebooted, with a folder in place of the node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import process
from testbed.errors import TestbedError
from testbed.process import Completed
from testbed.providers.kind import boot_id

SPEC = {"hooks": {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}, "linux": {}}


@dataclass
class Folder:
    """A node whose /etc is in a folder."""

    root: Path
    name: str = "kind-worker"

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        here = [each.replace("/etc/", f"{self.root}/etc/") for each in argv]
        return process.run(here, check=check, timeout=timeout)

    @property
    def spec(self) -> Path:
        return self.root / "etc/containerd/cri-base.json"


@pytest.fixture
def node(tmp_path: Path) -> Folder:
    node = Folder(tmp_path)
    node.spec.parent.mkdir(parents=True)
    node.spec.write_text(json.dumps(SPEC))
    return node


def test_a_service_mounts_a_new_id_before_containerd_and_kubelet_start(node: Folder) -> None:
    boot_id.prepare(node)

    service = (node.root / "etc/systemd/system/dra-testbed-boot-id.service").read_text()
    started = node.root / "etc/systemd/system/multi-user.target.wants/dra-testbed-boot-id.service"
    assert "\nBefore=containerd.service kubelet.service\n" in service
    assert "mount --bind /run/dra-testbed-boot-id /proc/sys/kernel/random/boot_id\n" in service
    assert started.read_text() == service


def test_containers_get_the_id_of_their_node_and_keep_the_hook_of_kind(node: Folder) -> None:
    boot_id.prepare(node)
    boot_id.prepare(node)

    content = json.loads(node.spec.read_text())
    kinds, ours = content["hooks"]["createContainer"]
    assert (kinds["path"], content["linux"]) == ("/kind/bin/mount-product-files.sh", {})
    assert ours["args"][-1] == "proc/sys/kernel/random/boot_id"


def test_a_node_image_that_is_not_of_kind_is_reported(node: Folder) -> None:
    node.spec.write_text("[]")

    with pytest.raises(TestbedError, match=r"cri-base.json on node kind-worker is not a base OCI spec"):
        boot_id.prepare(node)
