"""The word `claim`: a ResourceClaim, the devices that the scheduler gave it, who may use it, and what drivers say about its devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.drivers.published.slices import Device
from testbed.errors import WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.observation import Diagnosis, NotObserved, Target, failure, hold, observe
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet, eventually

PROTECTION = "resource.kubernetes.io/delete-protection"
_STILL_USED = Diagnosis(
    "a pod that uses it has not ended: only when the driver has unprepared the claim does its pod end"
)


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
    def uid(self) -> str:
        """What tells it from a later one of the same name."""
        return str(self.object["metadata"]["uid"])

    @property
    def devices(self) -> frozenset[Device]:
        """The devices that it has."""
        return allocated(self.object)

    def devices_of(self, request: str | None) -> frozenset[Device]:
        """The devices of one request in it, or of all."""
        return allocated(self.object, request)

    @property
    def allocation_results(self) -> list[Object]:
        """What the scheduler wrote about each of its devices."""
        return list(self.object.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()))

    @property
    def configuration_sources(self) -> tuple[str, ...]:
        """Who said something about its devices, in the order in which it counts: FromClass, FromClaim."""
        devices = self.object.get("status", {}).get("allocation", {}).get("devices", {})
        return tuple(each["source"] for each in devices.get("config", ()))

    @property
    def configuration_settings(self) -> tuple[str, ...]:
        """Which of the settings of the driver file (one, other) each of them said; 'something else' where it is none of these."""
        devices = self.object.get("status", {}).get("allocation", {}).get("devices", {})
        known = self.world.driver_file.configuration
        settings = {"one": known.one, "other": known.other} if known else {}
        said = [each["opaque"]["parameters"] for each in devices.get("config", ())]
        names = [[name for name, each in settings.items() if each.parameters == one] for one in said]
        return tuple(found[0] if found else "something else" for found in names)

    @property
    def requested_counts(self) -> tuple[int, ...]:
        """How many devices each of its requests is for, as the API server keeps it."""
        return tuple(each["exactly"]["count"] for each in self.object["spec"]["devices"]["requests"])

    @property
    def requests(self) -> frozenset[str]:
        """The requests that devices were allocated for; one with alternatives is followed by `/` and the one that was chosen."""
        return frozenset(each["request"] for each in self.allocation_results)

    def consumed_capacity(self, capacity: str) -> list[str]:
        """How much of a capacity each of its devices gives it, as the scheduler wrote it; a name without domain is the driver's."""
        said = [
            {key.rpartition("/")[2]: value for key, value in each.get("consumedCapacity", {}).items()}
            for each in self.allocation_results
        ]
        return [each.get(capacity, "nothing") for each in said]

    @property
    def share_ids(self) -> frozenset[str]:
        """The ids of its shares of devices."""
        return frozenset(each["shareID"] for each in self.allocation_results if "shareID" in each)

    @property
    def share_ids_with_status(self) -> frozenset[str]:
        """The ids of the shares of which a driver has said something."""
        return frozenset(each.get("shareID", "") for each in self.object.get("status", {}).get("devices", ()))

    @property
    def configured_for(self) -> frozenset[str]:
        """What configuration for its devices says in its field `for`."""
        found = self.object.get("status", {}).get("allocation", {}).get("devices", {}).get("config", ())
        said = (each["opaque"]["parameters"] for each in found)
        return frozenset(each["for"] for each in said if "for" in each)

    @property
    def pods(self) -> frozenset[str]:
        """The names of the pods that it is reserved for."""
        return _reserved_for(self.object)

    @property
    def owner(self) -> tuple[str, str] | None:
        """Kind and name of the object that it goes with; None for a claim that stands for itself."""
        owners = self.object["metadata"].get("ownerReferences", ())
        return next(((each["kind"], each["name"]) for each in owners if each.get("controller")), None)

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return dict(self.object["metadata"].get("labels") or {})

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        return dict(self.object["metadata"].get("annotations") or {})

    @property
    def is_protected(self) -> bool:
        """Whether it cannot go away while a pod may use it."""
        return PROTECTION in self.object["metadata"].get("finalizers", ())

    @property
    def is_being_deleted(self) -> bool:
        """Whether somebody has asked for its end."""
        return "deletionTimestamp" in self.object["metadata"]

    def conditions(self, device: Device) -> dict[str, str]:
        """The conditions of one of its devices: status by type."""
        return _conditions(self._status(device))

    def devices_with_condition(self, kind: str) -> frozenset[Device]:
        """Its devices of which somebody says so now, in a condition."""
        return frozenset(device for device in self.devices if self.conditions(device).get(kind) == "True")

    def data(self, device: Device) -> Any:
        """What a driver says about one of its devices in its own words."""
        return self._status(device).get("data")

    def status_of(self, device: Device) -> Object:
        """All that is said of one of its devices, and not how a container calls it: data, hardware address, and words for people."""
        entry = self._status(device)
        words = [(each.get("reason"), each.get("message")) for each in entry.get("conditions") or ()]
        address = entry.get("networkData", {}).get("hardwareAddress")
        return {"words": words, "data": entry.get("data"), "address": address}

    def network_data(self, device: Device) -> Object:
        """Interface name, addresses and hardware address of one of its devices."""
        return dict(self._status(device).get("networkData", {}))

    def delete(self) -> None:
        """Ask for its end."""
        self.world.kube.delete(self.object)

    def delete_despite_finalizers(self) -> None:
        """Take it away although somebody uses it, as an administrator does who removes its finalizers."""
        seen = self.object
        self.world.kube.delete(seen)
        self.world.kube.patch(seen, {"metadata": {"finalizers": None}})

    def should_be_allocated(self) -> Claim:
        """Wait until the scheduler gave it devices."""
        guess = Diagnosis("no pod asks for it, or no free device fits")

        def why() -> Diagnosis:
            return queries.diagnose_claim(self.world, self.namespace, self.name, guess)

        observe(self.world.kube, self._target, _allocated, f"{self._target} to be allocated", budgets.ALLOCATED, why)
        return self

    def should_be_deallocated(self) -> Claim:
        """Wait until it is nobody's: no device, no pod that may use it, nothing that keeps it from being deleted."""
        return self._should("be deallocated", _free, budgets.RELEASED, _STILL_USED)

    def should_be_reserved_for(self, *pods: str) -> Claim:
        """Wait until exactly these pods may use it; none named means nobody."""
        cause = Diagnosis("the controller manager or the scheduler has not noticed a pod that came or went")
        wanted = f"be reserved for {' and '.join(pods) or 'nobody'}"
        return self._should(wanted, _only_for(frozenset(pods)), budgets.RELEASED, cause)

    def should_have_device_status(self) -> Claim:
        """Wait until a driver has said something about one of its devices."""

        def said(claim: Object) -> None:
            if not claim.get("status", {}).get("devices"):
                raise NotYet("nobody has said anything about its devices")

        cause = Diagnosis("the driver writes no device status, or may not")
        return self._should("have a device status", said, budgets.RELEASED, cause)

    def should_have_more_status_for(self, device: Device, *, than: str) -> Claim:
        """Wait until somebody has said something of a device beside one condition: another one, data, or its network."""

        def said(claim: Object) -> None:
            entry = _entry(claim, device)
            others = _conditions(entry).keys() - {than}
            if not (others or entry.get("data") or entry.get("networkData")):
                raise NotYet(f"of {device} it says {than if entry else 'nothing'}")

        cause = Diagnosis("the driver writes no device status, or may not")
        return self._should(f"say more of {device} than {than}", said, budgets.RELEASED, cause)

    def should_have_condition(self, device: Device, kind: str, status: str = "True") -> Claim:
        """Wait until a driver says so about one of its devices."""

        def said(claim: Object) -> None:
            found = _conditions(_entry(claim, device))
            if found.get(kind) != status:
                raise NotYet(f"{device} has the conditions {found or 'none'}")

        cause = Diagnosis("the driver writes no device status, or may not")
        return self._should(f"say {kind}={status} of {device}", said, budgets.RELEASED, cause)

    def should_have_no_status_for(self, device: Device) -> Claim:
        """Wait until what was said about a device is gone, as it is with the allocation."""

        def forgotten(claim: Object) -> None:
            if _entry(claim, device):
                raise NotYet(f"it still says {_conditions(_entry(claim, device)) or 'something'}")

        cause = Diagnosis("it was not deallocated")
        return self._should(f"say nothing of {device}", forgotten, budgets.RELEASED, cause)

    def should_stay(self) -> Claim:
        """Nothing may make it go away now; its length is a budget."""
        cause = Diagnosis(f"it lacks the finalizer {PROTECTION}")
        hold(
            self.world.kube, self._target, lambda _claim: None, f"{self._target} to stay", budgets.STAYS, lambda: cause
        )
        if self.world.kube.find(RESOURCE, "ResourceClaim", self.name, self.namespace) is None:
            raise NotObserved(
                f"expected {self._target} to stay\n  likely cause: {cause.cause}\n  last seen: it is gone"
            )
        return self

    def should_be_gone(self) -> None:
        """Wait until there is no such claim any more."""

        def gone() -> None:
            left = self.world.kube.find(RESOURCE, "ResourceClaim", self.name, self.namespace)
            if left:
                held = ", ".join(left["metadata"].get("finalizers", ())) or "nothing"
                raise NotYet(f"still there, held by {held}, reserved for {', '.join(_reserved_for(left)) or 'nobody'}")

        expected = f"{self._target} to be gone"
        try:
            eventually(gone, expected, budgets.CLAIMS_GONE, longest_pause=0.1)
        except WaitTimeout as late:
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, _STILL_USED)
            ) from late

    @property
    def _target(self) -> Target:
        return Target(RESOURCE, "ResourceClaim", self.namespace, self.name)

    def _should(self, verb: str, check: Callable[[Object], None], budget: Budget, cause: Diagnosis) -> Claim:
        observe(self.world.kube, self._target, check, f"{self._target} to {verb}", budget, lambda: cause)
        return self

    def _status(self, device: Device) -> Object:
        return _entry(self.object, device)


def allocated(claim: Object, request: str | None = None) -> frozenset[Device]:
    """The devices in a claim's status. A request with alternatives is followed by `/` and the one that was chosen."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return frozenset(
        Device(each["driver"], each["pool"], each["device"])
        for each in results
        if request is None or each["request"].partition("/")[0] == request
    )


def _entry(claim: Object, device: Device) -> Object:
    entries: list[Object] = claim.get("status", {}).get("devices", [])
    wanted = (device.driver, device.pool, device.name)
    return next((each for each in entries if (each["driver"], each["pool"], each["device"]) == wanted), {})


def _conditions(entry: Object) -> dict[str, str]:
    """Status by type. Where a driver says none, the API server writes null for them."""
    return {each["type"]: each["status"] for each in entry.get("conditions") or ()}


def _reserved_for(claim: Object) -> frozenset[str]:
    return frozenset(each["name"] for each in claim.get("status", {}).get("reservedFor", ()))


def _allocated(claim: Object) -> None:
    if not claim.get("status", {}).get("allocation"):
        raise NotYet("no allocation in its status")


def _free(claim: Object) -> None:
    status = claim.get("status", {})
    if status.get("allocation") or status.get("reservedFor") or PROTECTION in claim["metadata"].get("finalizers", ()):
        raise NotYet(
            f"it has {sorted(map(str, allocated(claim)))}, reserved for {sorted(_reserved_for(claim)) or 'nobody'}"
        )


def _only_for(pods: frozenset[str]) -> Callable[[Object], None]:
    def check(claim: Object) -> None:
        if _reserved_for(claim) != pods:
            raise NotYet(f"reserved for {', '.join(sorted(_reserved_for(claim))) or 'nobody'}")

    return check
