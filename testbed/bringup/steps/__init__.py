"""What `up` does, step by step: `made_cluster` for a provider that makes its clusters, `found_cluster` for existing clusters."""

from collections.abc import Callable

from testbed.bringup.steps.found_cluster import FoundClusterProcedure
from testbed.bringup.steps.made_cluster import MadeClusterProcedure
from testbed.bringup.steps.plan import Plan
from testbed.bringup.steps.procedure import Context, ExpectedCluster, Procedure
from testbed.providers import provider
from testbed.providers.base import ClusterFinder, ClusterMaker

__all__ = ["Context", "ExpectedCluster", "Plan", "Procedure", "procedure_of"]


def procedure_of(provider_name: str) -> Procedure:
    """Return the procedure for the clusters of that provider. Raise UsageError if there is no such provider."""
    maker: Callable[[ClusterMaker], Procedure] = MadeClusterProcedure
    finder: Callable[[ClusterFinder], Procedure] = FoundClusterProcedure
    return provider(provider_name).dispatch(maker=maker, finder=finder)
