"""Finds probes for drivers whose containers show neither identities nor names of devices. Pure; `probes` calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import Sample
from testbed.onboarding.discovery.inference.shown import (
    KINDS,
    ProbeFinding,
    general,
    members,
    new_texts,
    shown_devices,
    texts,
)

_IN_GREP = {r"[\w-]+": "[[:alnum:]_-]+", r"\w+": "[[:alnum:]_]+", r"\d+": "[0-9]+"}
_PATHS = {"deviceNode": "", "mount": "", "networkInterface": "/sys/class/net/"}


def find_other_probe(with_claim: Sequence[Sample], without: Sequence[Contents]) -> ProbeFinding | None:
    """Return a probe for a set that differs for each device, or for whether there is a device. None if a claim adds nothing."""
    return next(_sets(with_claim, without), None) or next(_answers(with_claim, without), None)


def _sets(with_claim: Sequence[Sample], without: Sequence[Contents]) -> Iterator[ProbeFinding]:
    """Yield probes for values that containers with different devices do not share. Claims that share a device may differ."""
    if len(with_claim) < 2 or any(
        device.content.get("allowMultipleAllocations") for each in with_claim for device in each.devices
    ):
        return
    for kind in KINDS:
        for text in new_texts(kind, with_claim[0], without):
            finding = ProbeFinding(kind, _set_pattern(kind, text, with_claim[0]), example=text)
            shown = [
                {word for value in shown_devices(finding, each.contents) for word in members(value)}
                for each in with_claim
            ]
            is_shown = all(shown) and not any(shown_devices(finding, each) for each in without)
            if is_shown and not any(one & other for one, other in combinations(shown, 2)):
                yield finding


def _set_pattern(kind: str, text: str, sample: Sample) -> str:
    if kind != "env":
        return f"^(?P<set>{general(text, sample)})$"
    return f"^{general(text.partition('=')[0], sample)}=(?P<set>.+)$"


def _answers(with_claim: Sequence[Sample], without: Sequence[Contents]) -> Iterator[ProbeFinding]:
    """Yield commands that succeed in each container with a claim, and in none without."""
    for text in new_texts("env", with_claim[0], without):
        name = general(text.partition("=")[0], with_claim[0])
        finding = ProbeFinding("env", f"^(?P<set>{name}=)")
        if all(shown_devices(finding, each.contents) for each in with_claim) and not any(
            shown_devices(finding, each) for each in without
        ):
            yield ProbeFinding("command", command=("sh", "-c", f"env | grep -qE '^{_in_grep(name)}='"), example=text)
    for kind, folder in _PATHS.items():
        for text in new_texts(kind, with_claim[0], without):
            if all(text in texts(kind, each.contents) for each in with_claim):
                yield ProbeFinding("command", command=("test", "-e", f"{folder}{text}"), example=text)


def _in_grep(pattern: str) -> str:
    for ours, posix in _IN_GREP.items():
        pattern = pattern.replace(ours, posix)
    return pattern
