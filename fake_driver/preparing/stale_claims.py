"""Stale claims: still prepared on this node, although nothing needs them. Used by the driver for refusals and for `release`.

In rare cases the kubelet forgets a claim and never unprepares it, so its devices stay held. The driver cannot see whether the kubelet has
forgotten the claim or is late. It reports what it sees, and a person decides to release the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.preparing.claims import ClaimRef, ReadClaim, refuse_malformed


class DeviceHeld(ClaimRefused):
    """The claim needs what other claims, the holders, still hold."""

    def __init__(self, problem: str, holders: Iterable[ClaimRef]) -> None:
        self.holders = tuple(holders)
        super().__init__(problem)


def explain(held: DeviceHeld, read: ReadClaim, timeout: Callable[[], float]) -> str:
    """Return the text of the refusal, with advice for each holder that is stale."""
    return "; ".join([str(held), *filter(None, (_advice(ref, read, timeout()) for ref in held.holders))])


def why_stale(ref: ClaimRef, read: ReadClaim, timeout: float) -> str:
    """Describe why a prepared claim is stale, as a phrase that follows its name; '' if it may still be needed.

    Raise ApiError if the claim cannot be read.
    """
    try:
        claim = read(ref, timeout)
    except ApiError as error:
        if error.status == 404:
            return "does not exist any more"
        raise
    with refuse_malformed(ref):
        uid = claim.get("metadata", {}).get("uid")
        if uid != ref.uid:
            return f"was replaced by one with UID {uid}"
        return "" if claim.get("status", {}).get("allocation") else "is not allocated any more"


def check_stale(ref: ClaimRef, read: ReadClaim) -> None:
    """Raise ClaimRefused if a prepared claim may still be needed, or if that cannot be read."""
    if not ref.name:
        raise ClaimRefused(
            f"claim {ref} has no known name, so the driver cannot read whether it exists; if no claim has this UID, use force"
        )
    try:
        why = why_stale(ref, read, REQUEST_TIMEOUT)
    except ApiError as error:
        raise ClaimRefused(f"claim {ref} cannot be read, so it may still be needed: {error}") from error
    if not why:
        raise ClaimRefused(
            f"claim {ref} exists and is allocated: delete its pods, and the kubelet unprepares it; or use force"
        )


def _advice(ref: ClaimRef, read: ReadClaim, timeout: float) -> str:
    if not ref.name:
        command = _release_command(f"{ref.uid} --force")
        return f"its name was lost with its checkpoint; if no claim has this UID, release it: {command}"
    try:
        why = why_stale(ref, read, timeout)
    except (ApiError, ClaimRefused):
        return ""
    return (
        f"claim {ref.name} {why}; if the kubelet does not unprepare it soon, release it: {_release_command(ref.uid)}"
        if why
        else ""
    )


def _release_command(arguments: str) -> str:
    command = f"release {arguments}"
    return f"`dra-testbed hardware {command}`, or `python3 -m fake_driver.control {command}` in the driver's pod"
