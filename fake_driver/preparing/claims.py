"""What a ResourceClaim says to this driver. Pure: an object as the API serves it in, the devices to prepare out, or a refusal.

The kubelet never looks at the object, so every check that protects a node is here.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_driver.devices.counters import exceeds_counters
from fake_driver.devices.model import CounterConsumption
from fake_driver.errors import ClaimRefused
from fake_driver.name_patterns import DNS_LABEL, DNS_SUBDOMAIN, UID, matches

log = logging.getLogger(__name__)
Object = Mapping[str, Any]
Draws = Callable[[str, str], Sequence[CounterConsumption]]  # of a pool and a device in it
_POD_CLAIM = (
    "resource.kubernetes.io/pod-claim-name"  # the control plane's own; it knows the template that a claim was made from
)


@dataclass(frozen=True)
class ClaimRef:
    """How the kubelet names a claim. It says where to read; only the UID says which claim is meant."""

    uid: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})" if self.name else self.uid

    def validated(self) -> ClaimRef:
        """Itself, when all of it may become part of paths and URLs."""
        if not matches(UID, self.uid):
            raise ClaimRefused(f"the claim's UID {self.uid[:300]!r} is not one that this driver puts into paths")
        for what, text in (("namespace", self.namespace), ("name", self.name)):
            if not matches(DNS_SUBDOMAIN, text):
                raise ClaimRefused(f"the claim's {what} {text[:300]!r} is not one that Kubernetes allows")
        return self


ReadClaim = Callable[[ClaimRef, float], Object]  # with a timeout in seconds; raises ApiError


@dataclass(frozen=True)
class AllocatedDevice:
    """One allocation result of this driver."""

    request: str
    pool: str
    device: str
    admin_access: bool = False
    share_id: str | None = None
    # Of a device that claims share: how much of each capacity is this claim's.
    consumed: Mapping[str, str] = field(default_factory=dict, hash=False)
    # What opaque configuration says: of the device (behind its own name), and in the user's or the admin's own words.
    facts: Mapping[str, str] = field(default_factory=dict, hash=False)
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def base_request(self) -> str:
        """The request that containers refer to: without the name of the chosen subrequest."""
        return self.request.partition("/")[0]

    def excludes(self, other: AllocatedDevice) -> bool:
        """Whether the two cannot be prepared at the same time. Who has admin access only looks on, and shares lie side by side."""
        if (self.pool, self.device) != (other.pool, other.device) or self.admin_access or other.admin_access:
            return False
        return self.share_id is None or other.share_id is None


@dataclass(frozen=True)
class PreparedClaim:
    """A claim and its devices, as they are remembered. A claim that was made for one pod has there a name of its own."""

    ref: ClaimRef
    devices: tuple[AllocatedDevice, ...]
    pod_claim: str = ""


@contextlib.contextmanager
def refuse_malformed(ref: ClaimRef) -> Iterator[None]:
    """Around the reading of a claim: API servers see to its shape, but what came is somebody else's all the same.

    Should the mistake be ours after all, the log says where.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as odd:
        log.warning("claim %s does not look like a ResourceClaim", ref, exc_info=True)
        raise ClaimRefused(f"claim {ref} does not look like a ResourceClaim: {odd!r}") from odd


def read_allocation(claim: Object, ref: ClaimRef, driver: str) -> PreparedClaim:
    """The claim's devices of this driver, when it is the claim that the kubelet meant and it is allocated."""
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
        raise ClaimRefused(f"claim {ref} has an annotation {_POD_CLAIM} that is no name: {str(name)[:300]!r}")
    return str(name)


def _device(result: Object, ref: ClaimRef) -> AllocatedDevice:
    request, share = result.get("request"), result.get("shareID")
    parts = request.split("/") if isinstance(request, str) else []
    named = 1 <= len(parts) <= 2 and all(matches(DNS_LABEL, part) for part in parts)
    if not (named and matches(DNS_LABEL, result.get("device")) and (share is None or matches(UID, share))):
        raise ClaimRefused(f"claim {ref} has an allocation result that is malformed: {str(dict(result))[:300]}")
    consumed = {str(name): str(value) for name, value in (result.get("consumedCapacity") or {}).items()}
    return AllocatedDevice(
        str(request), str(result.get("pool")), result["device"], bool(result.get("adminAccess")), share, consumed
    )


def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
    """Which device another claim still has, in words; '' when all are free. `others` is by UID and may hold the claim itself."""
    ours: dict[tuple[str, str], list[AllocatedDevice]] = {}
    for device in wanted.devices:
        ours.setdefault((device.pool, device.device), []).append(device)
    for uid, other in others.items():
        for held in other.devices:
            uses = ours.get((held.pool, held.device), ())
            if uid != wanted.ref.uid and any(use.excludes(held) for use in uses):
                return f"device {held.device} is still prepared for claim {other.ref}, which was not unprepared yet"
    return ""


def counter_conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim], draws: Draws) -> str:
    """Which devices of several claims, or of this one, are the same hardware, in words; '' when there is enough for all.

    A whole and its parts draw from one set of counters. Schedulers see to it, but one that never saw the counters, because a feature
    gate is off, gives away both. `draws` says what a device takes.
    """
    used = (device for device in wanted.devices if not device.admin_access)
    if not any(draws(device.pool, device.device) for device in used):
        return ""  # most devices share nothing, however many claims there are
    users: dict[tuple[str, str], dict[str, tuple[PreparedClaim, CounterConsumption]]] = {}
    for claim in (*(other for uid, other in others.items() if uid != wanted.ref.uid), wanted):
        for device in (device for device in claim.devices if not device.admin_access):
            for draw in draws(device.pool, device.device):
                users.setdefault((device.pool, draw.counter_set), {})[device.device] = claim, draw
    for found in users.values():
        mine = [name for name, (claim, _) in found.items() if claim is wanted]
        if mine and exceeds_counters([draw for _, draw in found.values()]):
            return _same_hardware(mine, wanted, {name: claim for name, (claim, _) in found.items() if name not in mine})
    return ""


def _same_hardware(mine: Sequence[str], wanted: PreparedClaim, theirs: Mapping[str, PreparedClaim]) -> str:
    if not theirs:
        return f"claim {wanted.ref} has {', '.join(mine)}, which are the same hardware"
    name, other = next(iter(theirs.items()))
    return (
        f"device {mine[0]} is of the same hardware as device {name}, which is still prepared for claim {other.ref}, "
        "which was not unprepared yet"
    )
