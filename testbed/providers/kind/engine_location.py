"""Whether nodes would see our folders and serve where we look: not from a container that was given the socket of its host's engine.

Asked before any node is made, as the engine would make each folder that it does not find, as root, on its own host.
"""

from __future__ import annotations

import re
import secrets
import socket
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.kind.engine import Engine, is_rootless

_SHARES_BY_DESIGN = "docker-desktop"  # a machine of its own, which is given the user's folders and whose ports are ours
_LOOK = "cat /look/seen /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net"
_NOT_THERE = re.compile(r"source path does not exist|no such file or directory", re.IGNORECASE)
_CURE = (
    "give this container --network host and the folder of DRA_TESTBED_STATE at the path that it has outside, "
    "start an engine inside it, or use --provider local"
)


def refuse(engine: Engine, folder: Path, image: str) -> None:
    """TestbedError where containers do not see that folder, or serve on addresses that are not ours. What cannot be told is let pass."""
    if not _may_be_outside(engine):
        return
    token, seen = secrets.token_hex(8), folder / "seen"
    seen.write_text(f"{token}\n")
    try:
        # Not --volume, which makes what it does not find.
        mount = ("--network", "host", "--mount", f"type=bind,source={folder},target=/look,readonly")
        said = engine.run("run", "--rm", *mount, "--entrypoint", "sh", image, "-c", _LOOK, check=False)
    finally:
        seen.unlink()
    if token not in said.stdout:
        if _NOT_THERE.search(said.stderr):
            raise _outside(engine, f"nodes would not see {folder}, for which it would make an empty folder there")
    elif _other_addresses(said.stdout.split()) and not is_rootless(engine):
        raise _outside(engine, "nodes would serve on the 127.0.0.1 of that host, which is not ours")


def _may_be_outside(engine: Engine) -> bool:
    """Another name, or it keeps its containers where we have nothing: asked at each start, so it must be cheap."""
    host, kept = engine.says("host"), engine.says("folder")
    if host == _SHARES_BY_DESIGN:
        return False
    return host not in ("", socket.gethostname()) or (kept.startswith("/") and not _is_here(Path(kept)))


def _is_here(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError:  # somebody else's, as of rootless engines
        return True


def _other_addresses(seen: list[str]) -> bool:
    """Whether it is this very kernel, and not our network. A machine of its own hands its ports on, if anybody does."""
    return seen[1:2] == [process.boot_id()] and seen[2:3] != [str(Path("/proc/self/ns/net").readlink())]


def _outside(engine: Engine, what: str) -> TestbedError:
    return TestbedError(f"the engine of {engine.program} is on the host outside this container: {what}", hint=_CURE)
