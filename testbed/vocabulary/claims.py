"""ResourceClaims of a scenario: their allocation, reservations and device status, and the waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.drivers.published.record import PublishedDevice
from testbed.drivers.published.slices import Device
from testbed.kube.client import Object
from testbed.models.names import value_of
from testbed.vocabulary import budgets
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.claim_shape import is_added
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.observation import Diagnosis, Target, hold, observe
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet

PROTECTION = "resource.kubernetes.io/delete-protection"
_IN_USE = Diagnosis(
    "a pod that uses the claim has not ended; a pod ends only when the driver has unprepared its claims"
)
_NO_DEVICE_STATUS = Diagnosis("the driver does not write device status, or its account may not")


@dataclass(frozen=True)
class Claim:
    """A ResourceClaim of the scenario."""

    world: World
    namespace: str
    name: str

    @property
    def object(self) -> Object:
        """Return the current object, and remember how its devices were published when it was allocated."""
        found = self.world.kube.get(RESOURCE, "ResourceClaim", self.name, self.namespace)
        self.world.record.remember_allocation(found)
        return found

    @property
    def uid(self) -> str:
        """Return the UID, which differs from that of a later claim of the same name."""
        return str(self.object["metadata"]["uid"])

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the allocated devices."""
        return allocated(self.object)

    def record_devices(self) -> tuple[PublishedDevice, ...]:
        """Return the allocated devices as they were published when the allocation was first seen, also if the claim is gone."""
        found = self.world.kube.find(RESOURCE, "ResourceClaim", self.name, self.namespace)
        if found:
            self.world.record.remember_allocation(found)
        return self.world.record.allocated_to(self.namespace, self.name)

    def devices_of(self, request: str | None) -> CheckedSet[Device]:
        """Return the devices that are allocated for one request, or for all if `request` is None."""
        return allocated(self.object, request)

    @property
    def allocation_results(self) -> list[Object]:
        """Return status.allocation.devices.results: one entry for each allocated device."""
        return list(self.object.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()))

    @property
    def configuration_sources(self) -> tuple[str, ...]:
        """Return FromClass or FromClaim for each configuration of the allocation, in order of increasing precedence."""
        return tuple(each["source"] for each in self._configurations)

    @property
    def configuration_settings(self) -> tuple[str, ...]:
        """Return the driver file's name (one, other) of each configuration of the allocation, or 'something else'."""
        known = self.world.driver_file.configuration
        settings = known.settings if known else {}
        parameters = [each["opaque"]["parameters"] for each in self._configurations]
        names = [[name for name, each in settings.items() if each.parameters == one] for one in parameters]
        return tuple(found[0] if found else "something else" for found in names)

    @property
    def requested_counts(self) -> tuple[int, ...]:
        """Return the device count of each request, as the API server stored it."""
        return tuple(each["exactly"]["count"] for each in self.object["spec"]["devices"]["requests"])

    @property
    def requests(self) -> CheckedSet[str]:
        """Return the requests that have devices; a request with alternatives as REQUEST/SUBREQUEST."""
        return CheckedSet(each["request"] for each in self.allocation_results if not is_added(each["request"]))

    def consumed_capacity(self, capacity: str) -> list[str]:
        """Return how much of a capacity the claim consumes of each device, 'nothing' if it consumes none."""
        found = [
            value_of(capacity, each.get("consumedCapacity", {}), each["driver"]) for each in self.allocation_results
        ]
        return [each or "nothing" for each in found]

    @property
    def share_ids(self) -> CheckedSet[str]:
        """Return the share IDs of the allocated devices."""
        return CheckedSet(each["shareID"] for each in self.allocation_results if "shareID" in each)

    @property
    def share_ids_with_status(self) -> CheckedSet[str]:
        """Return the share IDs that have a device status."""
        return CheckedSet(each.get("shareID", "") for each in self.object.get("status", {}).get("devices", ()))

    @property
    def configured_for(self) -> CheckedSet[str]:
        """Return the values of the parameter `for` in the configurations of the allocation."""
        parameters = (each["opaque"]["parameters"] for each in self._configurations)
        return CheckedSet(each["for"] for each in parameters if "for" in each)

    @property
    def pods(self) -> CheckedSet[str]:
        """Return the names of the pods that the claim is reserved for."""
        return CheckedSet(_reserved_for(self.object))

    @property
    def owner(self) -> tuple[str, str] | None:
        """Return kind and name of the controlling owner, or None."""
        owners = self.object["metadata"].get("ownerReferences", ())
        return next(((each["kind"], each["name"]) for each in owners if each.get("controller")), None)

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels."""
        return dict(self.object["metadata"].get("labels") or {})

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations."""
        return dict(self.object["metadata"].get("annotations") or {})

    @property
    def is_protected(self) -> bool:
        """Return True if a finalizer keeps the claim from being deleted while a pod may use it."""
        return PROTECTION in self.object["metadata"].get("finalizers", ())

    @property
    def is_being_deleted(self) -> bool:
        """Return True if the claim has a deletion timestamp."""
        return "deletionTimestamp" in self.object["metadata"]

    def conditions(self, device: Device) -> dict[str, str]:
        """Return the conditions of a device: status by type."""
        return _conditions(self._status(device))

    def devices_with_condition(self, kind: str) -> CheckedSet[Device]:
        """Return the allocated devices whose condition of this type is True."""
        return CheckedSet(device for device in self.devices if self.conditions(device).get(kind) == "True")

    def data(self, device: Device) -> Any:
        """Return the driver's own data in the status of a device, or None."""
        return self._status(device).get("data")

    def status_of(self, device: Device) -> Object:
        """Return the parts of a device's status that could name a device: reasons and messages of conditions, data, hardware address."""
        entry = self._status(device)
        texts = [(each.get("reason"), each.get("message")) for each in entry.get("conditions") or ()]
        address = entry.get("networkData", {}).get("hardwareAddress")
        return {"texts": texts, "data": entry.get("data"), "address": address}

    def network_data(self, device: Device) -> Object:
        """Return interface name, addresses and hardware address in the status of a device."""
        return dict(self._status(device).get("networkData", {}))

    def delete(self) -> None:
        """Delete the claim, without waiting."""
        self.world.kube.delete(self.object)

    def delete_despite_finalizers(self) -> None:
        """Delete the claim and remove its finalizers, as an administrator may do while a pod uses it."""
        seen = self.object
        self.world.kube.delete(seen)
        self.world.kube.patch(seen, {"metadata": {"finalizers": None}})

    def should_be_allocated(self) -> Claim:
        """Wait until the scheduler has allocated devices."""
        otherwise = Diagnosis("no pod uses the claim, or no free device fits")

        def diagnose() -> Diagnosis:
            return queries.diagnose_claim(self.world, self.namespace, self.name, otherwise)

        expected = f"{self._target} to be allocated"
        observe(self.world.kube, self._target, _allocated, expected, budgets.ALLOCATED, diagnose)
        return self

    def should_be_deallocated(self) -> Claim:
        """Wait until the claim has no allocation, no reservation and no finalizer that protects it."""
        return self._should("be deallocated", _free, budgets.RELEASED, _IN_USE)

    def should_be_reserved_for(self, *pods: str) -> Claim:
        """Wait until the claim is reserved for exactly these pods; without names, for none."""
        cause = Diagnosis(
            "the scheduler or the controller manager has not processed a pod that was created or has ended"
        )
        expected = f"be reserved for {' and '.join(pods) or 'no pod'}"
        return self._should(expected, _only_for(frozenset(pods)), budgets.RELEASED, cause)

    def should_have_device_status(self) -> Claim:
        """Wait until the claim has a status of at least one device."""

        def reported(claim: Object) -> None:
            if not claim.get("status", {}).get("devices"):
                raise NotYet("status.devices is empty")

        return self._should("have a device status", reported, budgets.RELEASED, _NO_DEVICE_STATUS)

    def should_have_more_status_for(self, device: Device, *, than: str) -> Claim:
        """Wait until the status of a device has more than the condition `than`: another condition, data or network data."""

        def reported(claim: Object) -> None:
            entry = _entry(claim, device)
            others = _conditions(entry).keys() - {than}
            if not (others or entry.get("data") or entry.get("networkData")):
                raise NotYet(f"the status of {device} has {f'only the condition {than}' if entry else 'no entry'}")

        expected = f"have more in the status of {device} than the condition {than}"
        return self._should(expected, reported, budgets.RELEASED, _NO_DEVICE_STATUS)

    def should_have_condition(self, device: Device, kind: str, status: str = "True") -> Claim:
        """Wait until a device has a condition of this type with this status."""

        def reported(claim: Object) -> None:
            found = _conditions(_entry(claim, device))
            if found.get(kind) != status:
                raise NotYet(f"conditions of {device}: {_shown(found)}")

        expected = f"have the condition {kind}={status} for {device}"
        return self._should(expected, reported, budgets.RELEASED, _NO_DEVICE_STATUS)

    def should_have_no_status_for(self, device: Device) -> Claim:
        """Wait until the status of a device is cleared."""

        def cleared(claim: Object) -> None:
            entry = _entry(claim, device)
            if entry:
                raise NotYet(f"still there; conditions of {device}: {_shown(_conditions(entry))}")

        return self._should(
            f"have no status for {device}", cleared, budgets.RELEASED, Diagnosis("it was not deallocated")
        )

    def should_stay(self) -> Claim:
        """Require that the claim is not removed for the budget STAYS."""
        cause = Diagnosis(f"it lacks the finalizer {PROTECTION}")
        expected = f"{self._target} to stay"
        hold(self.world.kube, self._target, lambda _claim: None, expected, budgets.STAYS, lambda: cause)
        return self

    def should_be_gone(self) -> None:
        """Wait until the claim no longer exists."""

        def gone() -> None:
            left = self.world.kube.find(RESOURCE, "ResourceClaim", self.name, self.namespace)
            if left:
                finalizers = ", ".join(left["metadata"].get("finalizers", ())) or "none"
                raise NotYet(f"still there; finalizers: {finalizers}; reserved for: {_names(_reserved_for(left))}")

        expected = f"{self._target} to be gone"
        queries.eventually_or_explain(self.world, gone, expected, budgets.CLAIMS_GONE, _IN_USE)

    @property
    def _configurations(self) -> list[Object]:
        return list(self.object.get("status", {}).get("allocation", {}).get("devices", {}).get("config", ()))

    @property
    def _target(self) -> Target:
        return Target(RESOURCE, "ResourceClaim", self.namespace, self.name)

    def _should(self, verb: str, check: Callable[[Object], None], budget: Budget, cause: Diagnosis) -> Claim:
        observe(self.world.kube, self._target, check, f"{self._target} to {verb}", budget, lambda: cause)
        return self

    def _status(self, device: Device) -> Object:
        return _entry(self.object, device)


def allocated(claim: Object, request: str | None = None) -> CheckedSet[Device]:
    """Return the allocated devices, of one request or of all that a manifest has. The chosen subrequest counts as its request."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return CheckedSet(
        Device(each["driver"], each["pool"], each["device"])
        for each in results
        if not is_added(each["request"]) and (request is None or each["request"].partition("/")[0] == request)
    )


def _entry(claim: Object, device: Device) -> Object:
    entries: list[Object] = claim.get("status", {}).get("devices", [])
    wanted = (device.driver, device.pool, device.name)
    return next((each for each in entries if (each["driver"], each["pool"], each["device"]) == wanted), {})


def _conditions(entry: Object) -> dict[str, str]:
    """Return the status of each condition by its type. The API server may store null for no conditions."""
    return {each["type"]: each["status"] for each in entry.get("conditions") or ()}


def _shown(conditions: dict[str, str]) -> str:
    return ", ".join(f"{kind}={status}" for kind, status in conditions.items()) or "none"


def _reserved_for(claim: Object) -> frozenset[str]:
    return frozenset(each["name"] for each in claim.get("status", {}).get("reservedFor", ()))


def _names(pods: frozenset[str]) -> str:
    return ", ".join(sorted(pods)) or "no pod"


def _allocated(claim: Object) -> None:
    if not claim.get("status", {}).get("allocation"):
        raise NotYet("status.allocation is not set")


def _free(claim: Object) -> None:
    status, finalizers = claim.get("status", {}), claim["metadata"].get("finalizers", ())
    if status.get("allocation") or status.get("reservedFor") or PROTECTION in finalizers:
        devices = ", ".join(sorted(map(str, allocated(claim)))) or "none"
        raise NotYet(
            f"devices: {devices}; reserved for: {_names(_reserved_for(claim))}; finalizers: {', '.join(finalizers) or 'none'}"
        )


def _only_for(pods: frozenset[str]) -> Callable[[Object], None]:
    def check(claim: Object) -> None:
        if _reserved_for(claim) != pods:
            raise NotYet(f"reserved for {_names(_reserved_for(claim))}")

    return check
