"""Put a driver into a cluster as its driver file says, wait until it serves, take it out again. Called by bringup and the vocabulary.

No driver is known here by name: everything about one is in its driver file.
"""

from testbed.drivers.companions import install_together, load_together, manifests_together
from testbed.drivers.foreign import refuse_foreign
from testbed.drivers.install import install, manifests, uninstall
from testbed.drivers.name_checks import refuse_wrong_names
from testbed.drivers.ready import expected_nodes, wait_ready

__all__ = [
    "expected_nodes",
    "install",
    "install_together",
    "load_together",
    "manifests",
    "manifests_together",
    "refuse_foreign",
    "refuse_wrong_names",
    "uninstall",
    "wait_ready",
]
