"""The name of a kind cluster, and kind.json in its folder, from which another process can attach to it. For the provider."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

from testbed import process, state_files
from testbed.errors import TestbedError
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.engine import Engine
from testbed.state_files import Content, typed

_PREFIX = "dratb-"
_DIGITS = 8  # with the longest name of a testbed, a node's name has 61 of the allowed 63 characters


def kind_name(name: str, state: Path) -> str:
    """Return the cluster's name in kind. It is unique also if users, containers or hosts share an engine and name testbeds alike."""
    return f"{_PREFIX}{name}-{_digest(state)}"


def made_from_here(cluster: str, state: Path) -> bool:
    """Return True if the cluster has its name from that folder on this host. Whether others are in use cannot be checked."""
    return cluster.startswith(_PREFIX) and cluster.endswith(f"-{_digest(state)}")


def save(cluster: KindCluster) -> None:
    """Write kind.json. It must exist before nodes are created, so that they can be found if this process is killed."""
    (cluster.folder / "shared").mkdir(mode=0o700, parents=True, exist_ok=True)
    using = cluster.engine
    content = {
        "cluster": cluster.kind_name,
        "kind": str(cluster.kind),
        "engine": using.program,
        "variables": dict(using.variables),
        "id": using.info("id"),
    }
    state_files.write(cluster.folder / "kind.json", content)


def load(name: str, state: Path) -> KindCluster | None:
    """Return the cluster of that folder, or None if there is none.

    Raise DamagedState for a damaged file, and TestbedError if another engine than the recorded one answers.
    """

    def build(content: Content) -> tuple[KindCluster, str]:
        content = {"variables": {}, "id": "", **content}
        using = Engine(typed(content, "engine", str), state_files.string_map(content, "variables"))
        kind = Path(typed(content, "kind", str))
        return KindCluster(name, state, typed(content, "cluster", str), kind, using), typed(content, "id", str)

    found = state_files.read(state / "kind.json", build)
    if found is None:
        return None
    cluster, engine_id = found
    _check_engine(cluster.engine, engine_id, name, state)
    return cluster


def _digest(state: Path) -> str:
    """Return a digest of the folder, this host, its boot and the PID namespace: the same path may exist elsewhere."""
    place = (socket.gethostname(), process.boot_id(), process.pid_namespace(), str(state))
    return hashlib.sha256("\n".join(place).encode()).hexdigest()[:_DIGITS]


def _check_engine(using: Engine, before: str, name: str, state: Path) -> None:
    try:
        now = using.info("id")
    except TestbedError:
        return  # its program is missing or too slow, which the next command reports
    if before and now and now != before:
        raise TestbedError(
            f"the nodes of testbed {name} are in another container engine: {using.program} has the ID {now}, but {before} created them",
            hint=f"start that engine, or select it with `docker context use`; if it no longer exists, remove {state}",
        )
