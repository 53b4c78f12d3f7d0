"""The word `claim`: a ResourceClaim and the devices that the scheduler gave it."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.drivers.slices import Device
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing import Diagnosis, Target, observe
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet


@dataclass(frozen=True)
class Claim:
    """A claim of the scenario."""

    world: World
    namespace: str
    name: str

    @property
    def object(self) -> Object:
        """The claim as it is now."""
        return self.world.kube.get(RESOURCE, "ResourceClaim", self.name, self.namespace)

    @property
    def devices(self) -> frozenset[Device]:
        """The devices that it has."""
        return allocated(self.object)

    def devices_of(self, request: str | None) -> frozenset[Device]:
        """The devices of one request in it, or of all."""
        return allocated(self.object, request)

    def should_be_allocated(self) -> Claim:
        """Wait until the scheduler gave it devices."""
        target = Target(RESOURCE, "ResourceClaim", self.namespace, self.name)
        cause = Diagnosis("no pod asks for it, or no free device fits")
        observe(self.world.kube, target, _allocated, f"{target} to be allocated", budgets.ALLOCATED, lambda: cause)
        return self


def allocated(claim: Object, request: str | None = None) -> frozenset[Device]:
    """The devices in a claim's status. A request with alternatives is followed by `/` and the one that was chosen."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return frozenset(
        Device(each["driver"], each["pool"], each["device"])
        for each in results
        if request is None or each["request"].partition("/")[0] == request
    )


def _allocated(claim: Object) -> None:
    if not claim.get("status", {}).get("allocation"):
        raise NotYet("no allocation in its status")
