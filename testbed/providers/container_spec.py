"""The base OCI spec of a node's containers: it hides the hardware of this host from unprivileged ones, and shows the boot ID of the node.

The nodes of the local provider share the kernel, and so its sysfs. containerd removes the masks of the spec from privileged
containers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

# Disks and PCI devices, with the addresses of their memory.
_IN_PROC = (
    "/proc/bus/pci",
    "/proc/diskstats",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/mdstat",
    "/proc/partitions",
    "/proc/swaps",
)
_IN_SYS = (
    "block",
    "class/bdi",
    "class/block",
    "class/dmi",
    "dev",
    "devices/virtual/bdi",
    "devices/virtual/block",
    "devices/virtual/dmi",
    "kernel/iommu_groups",
)
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_OF_NO_DISK = {"bpf", "cgroup", "fuse", "resctrl", "selinux"}  # in /sys/fs; the others have a folder per mounted disk
# The kernel shows each network namespace only its own NICs, and workloads read their names here.
_PER_NAMESPACE = {"net"}


def base_spec(default: str, sys: Path = Path("/sys")) -> str:
    """Return containerd's default spec as a base spec: with our masks and our hook.

    The limits are removed, because containerd does so itself only without a base spec.
    """
    spec = json.loads(default)
    spec["process"]["rlimits"] = []
    linux = spec["linux"]
    linux["maskedPaths"] = [*linux["maskedPaths"], *_IN_PROC, *sorted(set(_masked_in(sys)))]
    spec["hooks"] = {"createContainer": [show_boot_id()]}
    return json.dumps(spec, indent=1)


def show_boot_id() -> dict[str, object]:
    """Return a hook that mounts the boot ID of the node into a container, which has its own /proc. Used by the kind provider too.

    runc allows no such mount in a spec. It executes the hook in the root of the container, while /bin/mount is still that of the node.
    """
    return {"path": "/bin/mount", "args": ["mount", "--bind", f"/{_BOOT_ID}", _BOOT_ID]}


def _masked_in(sys: Path) -> Iterator[str]:
    """Yield the folders of sysfs that lead to hardware: of disks, device trees, and the buses and classes with devices in them."""
    trees = set(_hardware_trees(sys))
    yield from (f"/sys/{path}" for path in _IN_SYS if (sys / path).is_dir())
    yield from (f"/sys/fs/{each.name}" for each in _folders(sys / "fs") if each.name not in _OF_NO_DISK)
    yield from (f"/sys/devices/{tree}" for tree in trees)
    for kind, members in (("bus", "devices"), ("class", ".")):
        for folder in _folders(sys / kind):
            if folder.name not in _PER_NAMESPACE and _leads_into(folder / members, trees):
                yield f"/sys/{kind}/{folder.name}"


def _hardware_trees(sys: Path) -> Iterator[str]:
    """Yield the names of device trees, such as pci0000:00. Counters of the CPU and its topology are no hardware of the host alone."""
    counters = {each.name for each in _entries(sys / "bus/event_source/devices")}
    for tree in _folders(sys / "devices"):
        if tree.name not in {"system", "virtual"} | counters:
            yield tree.name


def _leads_into(folder: Path, trees: set[str]) -> bool:
    links = (str(each.readlink()) for each in _entries(folder) if each.is_symlink())
    return any(link.partition("/devices/")[2].split("/")[0] in trees for link in links)


def _folders(folder: Path) -> Iterator[Path]:
    return (each for each in _entries(folder) if each.is_dir() and not each.is_symlink())


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
