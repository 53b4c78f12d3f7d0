"""The upstream programs of one Kubernetes version: what is locked, the cache, and where it is filled from.

Knows nothing of clusters.
"""

from testbed.binaries.fetch import ensure, inventory
from testbed.binaries.lock import Gate, Lock, Program, lock_for, minors, peers

__all__ = ["Gate", "Lock", "Program", "ensure", "inventory", "lock_for", "minors", "peers"]
