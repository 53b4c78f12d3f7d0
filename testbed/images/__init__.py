"""Container images without a registry: what a pod needs at least, a workload, the driver, and a kind node, as archives in the cache.

For bringup and the providers, which import the archives into nodes, and for `dra-testbed images`. Nothing in here starts a
container or knows what a cluster is; an image is a file, the same to the byte wherever it is made of the same parts.
"""

from testbed.images.basics import sandbox, workload
from testbed.images.driver import driver
from testbed.images.node.assemble import cached_node, node
from testbed.images.oci import Image

__all__ = ["Image", "cached_node", "driver", "node", "sandbox", "workload"]
