"""Build container images without a registry: the sandbox of a pod, a workload, the driver, and a kind node, as archives in the cache.

Used by bringup and the providers, which import the archives into nodes, and by `dra-testbed images`. This package starts no
containers and knows nothing of clusters. An image is a file; the same inputs give the same bytes on every host.
"""

from testbed.images.basics import sandbox, workload
from testbed.images.driver import driver
from testbed.images.node.assemble import cached_node, node
from testbed.images.oci import Image

__all__ = ["Image", "cached_node", "driver", "node", "sandbox", "workload"]
