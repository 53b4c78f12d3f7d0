"""Reads the CDI files of a node. Used by Kubelets, by the evidence and by diagnoses."""

from __future__ import annotations

from testbed.providers.base import Capability, Cluster, Node

FOLDERS = ("/etc/cdi", "/var/run/cdi")  # on a node, where container runtimes read CDI files
# The files that a container runtime reads. Files that are being written have other suffixes.
# A driver chooses their names, which may contain ends of lines and backslashes.
_LIST = r'for folder; do for each in "$folder"/*.json "$folder"/*.yaml; do [ ! -f "$each" ] || printf "%s\0" "$each"; done; done'
_MAX_BYTES = 1 << 24  # of a file: a driver could fill the memory of this process
# A file may be removed before it is read; all other errors count.
_READ = f'head -c {_MAX_BYTES} "$1" || [ ! -e "$1" ]'


def reachable_nodes(cluster: Cluster | None) -> dict[str, Node]:
    """Return the nodes by name if the cluster can run programs on them, otherwise none."""
    if cluster is None or Capability.RUN_ON_NODE not in cluster.capabilities:
        return {}
    return {node.name: node for node in cluster.nodes()}


def read_cdi_files(node: Node) -> dict[str, str]:
    """Return the content of the CDI files on a node by their paths. A file that is removed before it is read is left out.

    Of a file larger than any CDI file, only the beginning is returned.
    """
    paths = _shell(node, _LIST, *FOLDERS).split("\0")
    texts = {path: _shell(node, _READ, path) for path in sorted(paths) if path}
    return {path: text for path, text in texts.items() if text}


def list_cdi_folders(node: Node) -> str:
    """Return all that is in the CDI folders of a node, as `ls -la` prints it."""
    return node.run("sh", "-c", f"ls -la {' '.join(FOLDERS)} 2>&1", check=False).stdout


def _shell(node: Node, script: str, *arguments: str) -> str:
    return node.run("sh", "-c", script, "sh", *arguments).stdout
