"""Installs a driver as its driver file describes, waits until it is ready, and uninstalls it. Used by bringup and the vocabulary.

Everything about a driver is in its driver file. Only `rendered` and `expected_slices` are about the fake drivers; installing uses neither.
"""

from testbed.drivers.companions import all_manifests, install_all, load_with_companions, releases_of
from testbed.drivers.conflicting_driver import refuse_conflicting_driver
from testbed.drivers.install import install, manifests, uninstall
from testbed.drivers.name_checks import refuse_wrong_names
from testbed.drivers.ready import KeptNodes, expected_nodes, keep_expected_nodes, wait_ready

__all__ = [
    "KeptNodes",
    "all_manifests",
    "expected_nodes",
    "install",
    "install_all",
    "keep_expected_nodes",
    "load_with_companions",
    "manifests",
    "refuse_conflicting_driver",
    "refuse_wrong_names",
    "releases_of",
    "uninstall",
    "wait_ready",
]
