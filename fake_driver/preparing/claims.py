"""What this driver reads from a ResourceClaim: the devices to prepare, or the reason to refuse it. Pure functions.

The kubelet does not check the claim, so every check that protects a node is here.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fake_driver.devices.counters import exceeds_counters
from fake_driver.devices.model import CounterConsumption
from fake_driver.errors import ClaimRefused
from fake_driver.name_patterns import DNS_LABEL, DNS_SUBDOMAIN, UID, matches

log = logging.getLogger(__name__)
Object = Mapping[str, Any]
Consumption = Callable[[str, str], Sequence[CounterConsumption]]  # of a pool and a device in it
# Set by the control plane on claims that it creates from a template.
_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


@dataclass(frozen=True)
class ClaimRef:
    """A claim as the kubelet names it. Namespace and name are used to read it; the UID alone identifies it."""

    uid: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})" if self.name else self.uid

    def validated(self) -> ClaimRef:
        """Return itself. Raise ClaimRefused if a part of it must not be used in paths or URLs."""
        if not matches(UID, self.uid):
            raise ClaimRefused(f"the claim's UID {self.uid[:300]!r} must be letters, digits and hyphens, at most 63")
        for what, text in (("namespace", self.namespace), ("name", self.name)):
            if not matches(DNS_SUBDOMAIN, text):
                raise ClaimRefused(f"the claim's {what} {text[:300]!r} must be a DNS subdomain")
        return self


ReadClaim = Callable[[ClaimRef, float], Object]  # with a timeout in seconds; raises ApiError


class ClaimReader(Protocol):
    """What the driver needs of `ClaimClient`."""

    def get(self, namespace: str, name: str, timeout: float) -> Object:
        """Return a claim; raise ApiError if it cannot be read within the timeout in seconds."""


@dataclass(frozen=True)
class AllocatedDevice:
    """One allocation result of this driver. The checkpoint stores its fields under their names."""

    request: str
    pool: str
    device: str
    admin_access: bool = False
    share_id: str | None = None
    # How much of each capacity of a shared device this claim consumes.
    consumed: Mapping[str, str] = field(default_factory=dict, hash=False)
    # From opaque configuration: values that containers get under the device's name, and variables that its author names.
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def base_request(self) -> str:
        """Return the request that containers refer to: without the name of the chosen subrequest."""
        return self.request.partition("/")[0]

    def excludes(self, other: AllocatedDevice) -> bool:
        """Return True if the two must not be prepared at the same time. Admin access and two shares of a device do not conflict."""
        if (self.pool, self.device) != (other.pool, other.device) or self.admin_access or other.admin_access:
            return False
        return self.share_id is None or other.share_id is None


@dataclass(frozen=True)
class PreparedClaim:
    """A claim and its devices, as the checkpoint stores them. `pod_claim` is the pod's name of a claim made from a template."""

    ref: ClaimRef
    devices: tuple[AllocatedDevice, ...]
    pod_claim: str = ""


@contextlib.contextmanager
def refuse_malformed(ref: ClaimRef) -> Iterator[None]:
    """Turn errors while a claim is read into ClaimRefused: an object from the API server may have an unexpected shape.

    The traceback is logged, in case that the error is a bug of this driver.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as odd:
        log.warning("claim %s does not look like a ResourceClaim", ref, exc_info=True)
        raise ClaimRefused(f"claim {ref} does not look like a ResourceClaim: {odd!r}") from odd


def read_allocation(claim: Object, ref: ClaimRef, driver: str) -> PreparedClaim:
    """Return the devices that the claim has from this driver. Raise ClaimRefused if it is another claim or is not allocated."""
    metadata = claim.get("metadata", {})
    uid = metadata.get("uid")
    if uid != ref.uid:
        raise ClaimRefused(f"claim {ref} was replaced: the API server has UID {uid}")
    allocation = claim.get("status", {}).get("allocation")
    if not allocation:
        raise ClaimRefused(f"claim {ref} is not allocated")
    results = allocation.get("devices", {}).get("results") or []
    devices = tuple(_device(result, ref) for result in results if result.get("driver") == driver)
    return PreparedClaim(ref, devices, _pod_claim(metadata.get("annotations") or {}, ref))


def _pod_claim(annotations: Object, ref: ClaimRef) -> str:
    name = annotations.get(_POD_CLAIM, "")
    if name and not matches(DNS_LABEL, name):
        raise ClaimRefused(f"claim {ref}: annotation {_POD_CLAIM} must be a DNS label, but is {str(name)[:300]!r}")
    return str(name)


def _device(result: Object, ref: ClaimRef) -> AllocatedDevice:
    request, share = result.get("request"), result.get("shareID")
    parts = request.split("/") if isinstance(request, str) else []
    is_named = 1 <= len(parts) <= 2 and all(matches(DNS_LABEL, part) for part in parts)
    if not (is_named and matches(DNS_LABEL, result.get("device")) and (share is None or matches(UID, share))):
        raise ClaimRefused(f"claim {ref} has a malformed allocation result: {str(dict(result))[:300]}")
    consumed = {str(name): str(value) for name, value in (result.get("consumedCapacity") or {}).items()}
    return AllocatedDevice(
        str(request), str(result.get("pool")), result["device"], bool(result.get("adminAccess")), share, consumed
    )


def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
    """Describe a device of the claim that is still prepared for another claim; '' if there is none.

    `others` are the prepared claims by UID. The claim itself may be among them.
    """
    ours: dict[tuple[str, str], list[AllocatedDevice]] = {}
    for device in wanted.devices:
        ours.setdefault((device.pool, device.device), []).append(device)
    for uid, other in others.items():
        for held in other.devices:
            mine = ours.get((held.pool, held.device), ())
            if uid != wanted.ref.uid and any(device.excludes(held) for device in mine):
                return f"device {held.device} is still prepared for claim {other.ref}, which was not unprepared yet"
    return ""


def counter_conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim], consumption: Consumption) -> str:
    """Describe devices of the claims that consume more than all of a counter; '' if there are none.

    A device and its partitions consume from one set of counters. A scheduler without that feature does not see the counters and
    may allocate both. `consumption` returns what a device consumes.
    """
    consuming = (device for device in wanted.devices if not device.admin_access)
    if not any(consumption(device.pool, device.device) for device in consuming):
        return ""  # the usual case; it must not cost time for each of the other claims
    consumers: dict[tuple[str, str], dict[str, tuple[PreparedClaim, CounterConsumption]]] = {}
    for claim in (*(other for uid, other in others.items() if uid != wanted.ref.uid), wanted):
        for device in (device for device in claim.devices if not device.admin_access):
            for consumed in consumption(device.pool, device.device):
                consumers.setdefault((device.pool, consumed.counter_set), {})[device.device] = claim, consumed
    for found in consumers.values():
        mine = [name for name, (claim, _) in found.items() if claim is wanted]
        if mine and exceeds_counters([consumed for _, consumed in found.values()]):
            return _same_hardware(mine, wanted, {name: claim for name, (claim, _) in found.items() if name not in mine})
    return ""


def _same_hardware(mine: Sequence[str], wanted: PreparedClaim, theirs: Mapping[str, PreparedClaim]) -> str:
    if not theirs:
        return f"claim {wanted.ref} has devices {', '.join(mine)}, which are parts of the same hardware"
    name, other = next(iter(theirs.items()))
    return (
        f"device {mine[0]} is part of the same hardware as device {name}, which is still prepared for claim {other.ref}, "
        "which was not unprepared yet"
    )
