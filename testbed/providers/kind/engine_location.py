"""Checks that the container engine shares our file system and network. It does not if we run in a container with its host's socket.

Called before any node is created, because the engine would create each missing folder, as root, on its own host.
"""

from __future__ import annotations

import re
import secrets
import socket
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.kind.engine import Engine, is_rootless

_SHARES_BY_DESIGN = "docker-desktop"  # a virtual machine that mounts the user's folders and forwards its ports
_LOOK = "cat /look/seen /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net"
_NOT_FOUND = re.compile(r"source path does not exist|no such file or directory", re.IGNORECASE)
_CURE = (
    "run this container with --network host and the folder of DRA_TESTBED_STATE mounted at the same path as on the host, "
    "start an engine inside it, or use --provider local"
)


def refuse(engine: Engine, folder: Path, image: str) -> None:
    """Raise an error if containers cannot mount that folder, or have another loopback address. If that is unknown, pass."""
    if not _may_be_outside(engine):
        return
    token, seen = secrets.token_hex(8), folder / "seen"
    seen.write_text(f"{token}\n")
    try:
        # Not --volume, which creates missing folders.
        mount = ("--network", "host", "--mount", f"type=bind,source={folder},target=/look,readonly")
        answer = engine.run("run", "--rm", *mount, "--entrypoint", "sh", image, "-c", _LOOK, check=False)
    finally:
        seen.unlink()
    if token not in answer.stdout:
        if _NOT_FOUND.search(answer.stderr):
            raise _outside(engine, f"nodes cannot mount {folder}; the engine would create an empty folder on that host")
    elif _other_addresses(answer.stdout.split()) and not is_rootless(engine):
        raise _outside(engine, "nodes would serve on the 127.0.0.1 of that host, not of this container")


def _may_be_outside(engine: Engine) -> bool:
    """Return True if the engine has another host name, or its folder does not exist here. It runs at each start, so it must be fast."""
    host, folder = engine.info("host"), engine.info("folder")
    if host == _SHARES_BY_DESIGN:
        return False
    return host not in ("", socket.gethostname()) or (folder.startswith("/") and not _is_here(Path(folder)))


def _is_here(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError:  # it belongs to another user, as with rootless engines
        return True


def _other_addresses(seen: list[str]) -> bool:
    """Return True if the container runs on this kernel with another network. A virtual machine forwards its ports."""
    return seen[1:2] == [process.boot_id()] and seen[2:3] != [str(Path("/proc/self/ns/net").readlink())]


def _outside(engine: Engine, what: str) -> TestbedError:
    return TestbedError(f"the engine of {engine.program} is on the host outside this container: {what}", hint=_CURE)
