"""The upstream programs of a Kubernetes version: lock files, the cache, and the sources that fill it.

Independent of clusters.
"""

from testbed.binaries.fetch import ensure, inventory
from testbed.binaries.lock import Gate, Lock, Program, lock_for, minors, peers

__all__ = ["Gate", "Lock", "Program", "ensure", "inventory", "lock_for", "minors", "peers"]
