"""How a kind cluster is called, and kind.json in its folder: what another process must know to find it again, and in which engine."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

from testbed import process
from testbed.errors import TestbedError
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.engine import Engine

_PREFIX = "dratb-"
_DIGITS = 8  # with the longest name of a testbed a node's name has 61 characters, and 63 are allowed


def kind_name(name: str, state: Path) -> str:
    """Users, containers and hosts may share an engine and have testbeds of one name, even in folders of one name."""
    return f"{_PREFIX}{name}-{_from_here(state)}"


def made_from_here(cluster: str, state: Path) -> bool:
    """Whether that folder, of this very host, gave the cluster its name. Of others we cannot say whether they are in use."""
    return cluster.startswith(_PREFIX) and cluster.endswith(f"-{_from_here(state)}")


def remember(cluster: KindCluster) -> None:
    """Written before anything is made, so that whoever is killed leaves a trace."""
    (cluster.folder / "shared").mkdir(mode=0o700, parents=True, exist_ok=True)
    using = cluster.engine
    content = {
        "cluster": cluster.kind_name,
        "kind": str(cluster.kind),
        "engine": using.program,
        "variables": dict(using.variables),
        "id": using.says("id"),
    }
    temporary = cluster.folder / "kind.json.tmp"
    temporary.write_text(json.dumps(content, indent=1))
    temporary.replace(cluster.folder / "kind.json")


def recall(name: str, state: Path) -> KindCluster | None:
    """The cluster that was made in this folder, if one was. Its engine may be silent; another one in its place is an error."""
    try:
        said = json.loads((state / "kind.json").read_text())
    except FileNotFoundError:
        return None
    using = Engine(said["engine"], said.get("variables", {}))
    _demand_same(using, said.get("id", ""), name, state)
    return KindCluster(name, state, said["cluster"], Path(said["kind"]), using)


def _from_here(state: Path) -> str:
    """Of the folder, the host since it was started, and the namespace of its processes: a path alone says nothing elsewhere."""
    place = (socket.gethostname(), process.boot_id(), process.pid_namespace(), str(state))
    return hashlib.sha256("\n".join(place).encode()).hexdigest()[:_DIGITS]


def _demand_same(using: Engine, before: str, name: str, state: Path) -> None:
    try:
        now = using.says("id")
    except TestbedError:
        return  # its program is gone, or it takes too long: whoever needs it will say so
    if before and now and now != before:
        raise TestbedError(
            f"the nodes of testbed {name} are in another engine: {using.program} answers as {now}, and they were made by {before}",
            hint=f"start that one again, or `docker context use` it; when it has gone for good, remove {state}",
        )
