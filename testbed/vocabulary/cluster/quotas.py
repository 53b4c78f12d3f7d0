"""ResourceQuotas of a scenario and their counts."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.observation import Diagnosis, Target, observe
from testbed.vocabulary.world import World
from testbed.waiting import NotYet


@dataclass(frozen=True)
class Quota:
    """A ResourceQuota of the scenario."""

    world: World
    namespace: str
    name: str

    def should_count(self, resource: str, *, used: str) -> Quota:
        """Wait until the used amount of a resource is counted. Before the first count, a quota rejects everything."""

        def counted(quota: Object) -> None:
            seen = quota.get("status", {}).get("used", {}).get(resource)
            if seen != used:
                raise NotYet(f"status.used: {seen or 'not counted yet'}")

        target = Target("v1", "ResourceQuota", self.namespace, self.name)
        cause = Diagnosis("the controller manager does not count this resource", by_environment=True)
        expected = f"{target} to count {used} of {resource}"
        observe(self.world.kube, target, counted, expected, budgets.QUOTA_COUNTED, lambda: cause)
        return self
