"""Claims that are still prepared here though nobody needs them any more, because their Unprepare never came or was lost.

The kubelet forgets a claim in rare cases; then its devices would be taken for ever. Nobody can tell from here whether the kubelet has
forgotten or is only late, so the driver says what it sees, and a person decides: `release` gives the devices back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.preparing.claims import ClaimRef, ReadClaim, refuse_malformed


class DeviceHeld(ClaimRefused):
    """Other claims still have what this one needs."""

    def __init__(self, problem: str, holders: Iterable[ClaimRef]) -> None:
        self.holders = tuple(holders)
        super().__init__(problem)


def explain(taken: DeviceHeld, read: ReadClaim, timeout: Callable[[], float]) -> str:
    """What the refusal says, and what to do about holders that nobody needs any more."""
    return "; ".join([str(taken), *filter(None, (_advice(ref, read, timeout()) for ref in taken.holders))])


def why_stale(ref: ClaimRef, read: ReadClaim, timeout: float) -> str:
    """Why nobody needs what a claim has here any more, in words that follow its name; '' where somebody may.

    ApiError where nobody can tell.
    """
    try:
        claim = read(ref, timeout)
    except ApiError as missing:
        if missing.status == 404:
            return "does not exist any more"
        raise
    with refuse_malformed(ref):
        uid = claim.get("metadata", {}).get("uid")
        if uid != ref.uid:
            return f"was replaced by one with UID {uid}"
        return "" if claim.get("status", {}).get("allocation") else "is not allocated any more"


def check_stale(ref: ClaimRef, read: ReadClaim) -> None:
    """Refuse to release what somebody may need, or of which nobody can tell."""
    if not ref.name:
        raise ClaimRefused(f"claim {ref} is known by its UID alone, so nobody can tell whether it exists; force it")
    try:
        why = why_stale(ref, read, REQUEST_TIMEOUT)
    except ApiError as lost:
        raise ClaimRefused(f"whether claim {ref} is still needed cannot be read: {lost}") from lost
    if not why:
        raise ClaimRefused(
            f"claim {ref} exists and is allocated: end its pods, and the kubelet unprepares it; or force it"
        )


def _advice(ref: ClaimRef, read: ReadClaim, timeout: float) -> str:
    words = f"release {ref.uid}"
    what = f"`dra-testbed hardware {words}`, or `python3 -m fake_driver.control {words}` in the driver's pod, gives it back"
    if not ref.name:
        return f"its name was lost with its checkpoint; if no claim has this UID, {what} with --force"
    try:
        why = why_stale(ref, read, timeout)
    except (ApiError, ClaimRefused):
        return ""
    return f"claim {ref.name} {why}; unless the kubelet unprepares it soon, {what}" if why else ""
