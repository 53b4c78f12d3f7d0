"""Copies the files of drivers that run as processes (`spec.install.process`) to the nodes. Used by bringup and `driver init`."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.models.driver_file import DriverFile
from testbed.providers.base import Cluster, RunsProcesses


def copy_node_files(cluster: Cluster, drivers: Iterable[DriverFile]) -> None:
    """Copy the programs and files of the drivers to all nodes."""
    sections = [each.install.process for each in drivers if each.install and each.install.process]
    files = {path: file for each in sections for path, file in each.copied.items()}
    if files and isinstance(cluster, RunsProcesses):
        for node in cluster.nodes():
            for path, file in files.items():
                cluster.copy_to_node(node.name, file, path)
