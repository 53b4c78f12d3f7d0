"""Import images into the containerd state of a node image, with a temporary containerd. Used by assemble.py.

No container is started and nothing is mounted: blobs are written to the content store, names to containerd's database. The node
unpacks the layers when a container first uses them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.images import tarball
from testbed.images.tarball import Member
from testbed.process import ProcessId
from testbed.waiting import Budget, NotYet, eventually

_KEPT_FOLDERS = ("io.containerd.content.v1.content", "io.containerd.metadata.v1.bolt")
_LONGEST_SOCKET = 100  # the kernel allows 107 bytes, and containerd appends a few
_START = Budget("containerd start", 30, "containerd opens an empty database, which takes a second on an idle host")

# An import needs only the content store and its database. These plugins would inspect the host.
_NOT_NEEDED = (
    "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri",
    "io.containerd.runtime.v2.task", "io.containerd.service.v1.tasks-service", "io.containerd.grpc.v1.tasks",
    "io.containerd.internal.v1.opt", "io.containerd.internal.v1.restart", "io.containerd.internal.v1.tracing",
    "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.overlayfs",
    "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.ttrpc.v1.otelttrpc",
)  # fmt: skip


def preload(
    programs: Mapping[str, Path], archives: Sequence[Path], names: Sequence[str], scratch: Path
) -> list[Member]:
    """Return the content of /var/lib/containerd for a node that has these images.

    Raises TestbedError if an image in `names` is missing after the import of the archives.
    """
    root = scratch / "containerd"
    with _containerd(programs["containerd"], root, scratch) as address:
        ctr: list[str | Path] = [programs["ctr"], "--address", address, "--namespace", "k8s.io", "images"]
        for archive in archives:
            # Pinned, because the node could not pull them again. Local, because an import by the server needs a snapshotter.
            flags = ("--local", "--all-platforms", "--no-unpack", "--label", "io.cri-containerd.pinned=pinned")
            process.run(process.kill_with_parent([*ctr, "import", *flags, archive]), timeout=300)
        imported = process.run([*ctr, "list", "--quiet"]).stdout.split()
    missing = set(names) - set(imported)
    if missing:
        raise TestbedError(f"images are missing in containerd after the import: {', '.join(sorted(missing))}")
    return [
        tarball.folder("var/lib/containerd", 0o711),
        *(member for kept in _KEPT_FOLDERS for member in tarball.tree(root / kept, f"var/lib/containerd/{kept}")),
    ]


@contextlib.contextmanager
def _containerd(program: Path, root: Path, scratch: Path) -> Iterator[Path]:
    """Run a containerd and yield the path of its socket. It is terminated at the end, and killed if this process dies."""
    run = scratch / "run"
    run.mkdir()
    address = run / "c.sock"
    if len(str(address)) > _LONGEST_SOCKET:
        raise TestbedError(
            f"cannot start containerd: {scratch} is too long for the path of a socket",
            hint="set DRA_TESTBED_CACHE to a shorter path",
        )
    config, log = run / "config.toml", run / "containerd.log"
    config.write_text(_configuration(root, run, address))
    running = process.start(process.kill_with_parent([program, "--config", config]), log=log)
    try:
        eventually(lambda: _check_listening(running, address, log), "containerd to listen", _START, longest_pause=0.05)
        yield address
    finally:
        process.kill(running, grace=20)


def _check_listening(running: ProcessId, address: Path, log: Path) -> None:
    if not process.alive(running):
        raise CommandFailed(["containerd"], "ended", log.read_text())
    if not address.exists():
        raise NotYet(log.read_text()[-300:])


def _configuration(root: Path, run: Path, address: Path) -> str:
    owner = f"uid = {os.geteuid()}\ngid = {os.getegid()}\n"
    quoted = {name: json.dumps(str(path)) for name, path in (("root", root), ("state", run / "state"))}
    return (
        f"version = 3\nroot = {quoted['root']}\nstate = {quoted['state']}\n"
        f"disabled_plugins = {json.dumps(_NOT_NEEDED)}\n"
        f"[grpc]\naddress = {json.dumps(str(address))}\n{owner}"
        f"[ttrpc]\naddress = {json.dumps(str(run / 't.sock'))}\n{owner}"
    )
