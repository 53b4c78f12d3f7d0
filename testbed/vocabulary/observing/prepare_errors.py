"""What a kubelet reports when it cannot prepare claims, apart from the text that the driver wrote. Pure; for diagnoses and waits.

A driver chooses the text of its errors, so a decision must only use what the kubelet and the API server wrote before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from testbed.kube import messages
from testbed.kube.client import Object

# From the name of the call on, the rest may be the driver's text, up to the end.
_CALL = re.compile(
    r"NodePrepareResources(?: failed for ResourceClaim (?P<claim>[^ :]+): |: rpc error: code = (?P<code>[A-Za-z]+) desc = )?"
)
_UNANSWERED = frozenset({"Unavailable", messages.DEADLINE_EXCEEDED, "Canceled", "Unimplemented"})


@dataclass(frozen=True)
class PrepareError:
    """An error of a kubelet that prepares the claims of a pod.

    `before_call` is what the kubelet and the API server wrote before the driver's part. `called` is True if the kubelet called the
    driver. `claim` is the claim that the driver answered with an error, `code` the gRPC code of a failed call. `answer` is the
    driver's own text.
    """

    before_call: str
    called: bool = False
    claim: str = ""
    code: str = ""
    answer: str = ""

    @property
    def is_refusal(self) -> bool:
        """Return True if the driver answered with an error, for one claim or for the whole call."""
        return bool(self.claim) or bool(self.code and self.code not in _UNANSWERED)

    @property
    def is_unanswered(self) -> bool:
        """Return True if the driver is not registered, or did not answer."""
        return self.is_unregistered or self.code in _UNANSWERED

    @property
    def is_unregistered(self) -> bool:
        """Return True if the kubelet did not call the driver because it is not registered."""
        return not self.called and messages.DRIVER_NOT_REGISTERED in self.before_call

    @property
    def is_unknown_to_authorizer(self) -> bool:
        """Return True if the API server refused the claim to the kubelet, because it did not know the pod yet."""
        return not self.called and messages.CLAIM_UNKNOWN_TO_AUTHORIZER in self.before_call

    @property
    def is_before_driver(self) -> bool:
        """Return True if the kubelet could not read the claim from the API server, or could not write its own checkpoint."""
        texts = (messages.CLAIM_NOT_FETCHED, messages.CHECKPOINT_NOT_WRITTEN)
        return not self.called and any(text in self.before_call for text in texts)


def read_prepare_error(event: Object) -> PrepareError | None:
    """Return the kubelet's error in an event; None if the event reports something else."""
    if event.get("reason") != messages.FAILED_PREPARE:
        return None
    message = str(event.get("message") or "")
    call = _CALL.search(message)
    if not call:
        return PrepareError(message)
    before, answer = message[: call.start()], message[call.end() :]
    return PrepareError(before, True, call["claim"] or "", call["code"] or "", answer)


def text_by_kubernetes(event: Object) -> str:
    """Return the message of an event without the driver's own text."""
    found, message = read_prepare_error(event), str(event.get("message") or "")
    return message.removesuffix(found.answer) if found else message


def is_prepare_error(event: Object, claim: str) -> bool:
    """Return True if a driver answered NodePrepareResources with an error for this claim, or for the whole call.

    A call without an answer, or with a late one, does not count.
    """
    found = read_prepare_error(event)
    return bool(found and found.is_refusal and found.claim in ("", claim))


def is_driver_unavailable(event: Object) -> bool:
    """Return True if a kubelet could not prepare claims because the driver is not registered or does not answer."""
    found = read_prepare_error(event)
    return bool(found and found.is_unanswered)


def is_unknown_to_authorizer(event: Object) -> bool:
    """Return True if a kubelet requested a claim before the API server's node authorizer knew the pod."""
    found = read_prepare_error(event)
    return bool(found and found.is_unknown_to_authorizer)


def has_text(reason: str, text: str) -> Callable[[Object], bool]:
    """Return a check whether an event has this reason, and this text in what Kubernetes wrote of its message."""
    return lambda event: event.get("reason") == reason and text in text_by_kubernetes(event)


def prepare_error(claim: str, because: str) -> tuple[str, Callable[[Object], bool]]:
    """Return the words for an event that a driver failed to prepare a claim with this text in its error, and a check for it."""
    what = f"that its driver failed to prepare claim {claim}" + (f": …{because}…" if because else "")
    return what, lambda event: is_prepare_error(event, claim) and because in event["message"]
