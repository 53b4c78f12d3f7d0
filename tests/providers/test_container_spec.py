"""What the base OCI spec hides, with a tree of ordinary folders and links instead of /sys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.providers.container_spec import base_spec

DEFAULT = {
    "process": {"rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}]},
    "mounts": [{"destination": "/sys", "type": "sysfs"}],
    "linux": {"maskedPaths": ["/proc/kcore", "/sys/firmware"]},
}


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    for folder in (
        "block", "dev/block", "devices/system/cpu", "devices/virtual/net/lo", "devices/virtual/block/loop0", "devices/virtual/misc/fuse",
        "devices/pci0000:00/0000:00:01.0/nvme/nvme0", "devices/pci0000:00/0000:00:02.0/net/eth0", "devices/software",
        "fs/cgroup", "fs/ext4/vda",
    ):  # fmt: skip
        (tmp_path / folder).mkdir(parents=True)
    for link, target in {
        "bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
        "bus/cpu/devices/cpu0": "../../../devices/system/cpu",
        "bus/event_source/devices/software": "../../../devices/software",
        "class/nvme/nvme0": "../../devices/pci0000:00/0000:00:01.0/nvme/nvme0",
        "class/net/eth0": "../../devices/pci0000:00/0000:00:02.0/net/eth0",
        "class/misc/fuse": "../../devices/virtual/misc/fuse",
    }.items():
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(target)
    return tmp_path


def masked(sys: Path) -> set[str]:
    return set(json.loads(base_spec(json.dumps(DEFAULT), sys))["linux"]["maskedPaths"])


def test_pci_devices_disks_and_their_buses_and_classes_are_masked(sys: Path) -> None:
    hidden = {
        "/sys/block",
        "/sys/dev",
        "/sys/bus/pci",
        "/sys/class/nvme",
        "/sys/devices/pci0000:00",
        "/sys/devices/virtual/block",
    }

    assert hidden | {"/sys/fs/ext4", "/proc/partitions", "/proc/bus/pci"} <= masked(sys)


def test_what_containerd_masks_by_default_stays_masked(sys: Path) -> None:
    assert {"/proc/kcore", "/sys/firmware"} <= masked(sys)


def test_the_cpu_the_interfaces_of_the_pod_and_its_cgroup_stay_visible(sys: Path) -> None:
    seen = [
        "devices/system",
        "devices/software",
        "devices/virtual/net",
        "class/net",
        "class/misc",
        "bus/cpu",
        "bus/event_source",
        "fs/cgroup",
    ]

    assert [path for path in seen if f"/sys/{path}" in masked(sys)] == []


def test_only_folders_that_exist_are_masked_in_sys(tmp_path: Path) -> None:
    assert {path for path in masked(tmp_path) if path.startswith("/sys")} == {"/sys/firmware"}


def test_the_spec_keeps_the_default_mounts_and_sets_no_limits(sys: Path) -> None:
    spec = json.loads(base_spec(json.dumps(DEFAULT), sys))

    assert spec["mounts"] == DEFAULT["mounts"]
    assert spec["process"]["rlimits"] == []


def test_a_container_gets_the_boot_id_of_its_node_before_its_root_is_changed(sys: Path) -> None:
    (hook,) = json.loads(base_spec(json.dumps(DEFAULT), sys))["hooks"]["createContainer"]

    assert Path(hook["path"]).is_file()
    assert hook["args"] == ["mount", "--bind", "/proc/sys/kernel/random/boot_id", "proc/sys/kernel/random/boot_id"]
