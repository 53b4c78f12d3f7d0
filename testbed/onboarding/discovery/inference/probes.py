"""Finds how a container shows its devices: the differences between containers with and without a claim, as a probe. Pure.

Each candidate is tried on all samples. It has to show exactly the devices of each container, and none without a claim.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import PublishedDevice, Sample
from testbed.onboarding.discovery.inference.identities import IdentityCandidate
from testbed.onboarding.discovery.inference.other_probes import find_other_probe
from testbed.onboarding.discovery.inference.shown import (
    KINDS,
    ProbeFinding,
    cpus,
    escaped,
    general,
    like,
    new_texts,
    shown_devices,
)

_JOINING = r"[A-Za-z0-9]"  # a value beside one of these is a part of a longer word
_JOINING_NUMBERS = r"[A-Za-z0-9.,:-]"  # a number beside one of these is a part of a range, a version or an address


def find_probe(
    samples: Collection[Sample], candidates: Sequence[IdentityCandidate], devices: Collection[PublishedDevice]
) -> ProbeFinding | None:
    """Return the best probe that shows exactly the devices of each container, and could show all devices.

    If there is none, return one that shows something else of each claim, or only whether there is one. None if a claim adds nothing.
    """
    with_claim, without = split(samples)
    if not with_claim or not without:
        return None
    proposed = _proposals(with_claim[0], without, _in_order(candidates, devices))
    found = (each for each in proposed if _holds(each, with_claim, without) and _could_show(each, devices))
    return next(found, None) or find_other_probe(with_claim, without)


def additions(samples: Collection[Sample]) -> tuple[str, ...]:
    """Return in words what a claim adds to its container."""
    with_claim, without = split(samples)
    return with_claim[0].contents.additions_to(without[0]) if with_claim and without else ()


def split(samples: Collection[Sample]) -> tuple[list[Sample], list[Contents]]:
    """Return the samples with devices, and what containers without a claim have."""
    ran = [each for each in samples if not each.refusal]
    return [each for each in ran if each.devices], [each.contents for each in ran if not each.count]


def _value(device: PublishedDevice, identity: IdentityCandidate | None) -> str:
    """Return what a container shows of a device: the value of an attribute, or its name."""
    if identity is None:
        return device.name
    value = device.attributes[identity.attribute]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_order(
    candidates: Sequence[IdentityCandidate], devices: Collection[PublishedDevice]
) -> list[IdentityCandidate | None]:
    """Return texts, then the name (None), then numbers, which may be a part of anything by chance."""
    numbers = [each for each in candidates if any(_value(device, each).isdigit() for device in devices)]
    return [*(each for each in candidates if each not in numbers), None, *numbers]


def _proposals(
    sample: Sample, without: Sequence[Contents], candidates: Sequence[IdentityCandidate | None]
) -> Iterator[ProbeFinding]:
    """Yield probes for what a container shows of its first device: CPUs, then environment, device nodes, mounts and interfaces."""
    if any(each.cpus != sample.contents.cpus for each in without):
        numbers = sorted((each for each in candidates if each), key=lambda each: "cpu" not in each.attribute.lower())
        yield from (ProbeFinding("cpuset", identity=each, example=cpus(sample.contents)) for each in numbers)
    for kind in KINDS:
        new = new_texts(kind, sample, without)
        for identity in candidates:
            value = _value(sample.devices[0], identity)
            for text in new:
                for pattern in _patterns(text, value, "id" if identity else "name", sample):
                    yield ProbeFinding(kind, pattern, identity=identity, example=text)


def _patterns(text: str, value: str, group: str, sample: Sample) -> Iterator[str]:
    """Yield regular expressions for a text that contains a value."""
    joining = _JOINING_NUMBERS if value.isdigit() else _JOINING
    for found in re.finditer(rf"(?<!{joining}){re.escape(value)}(?!{joining})", text) if value else ():
        before, after = (general(part, sample) for part in (text[: found.start()], text[found.end() :]))
        for pattern in (like(value), re.sub(r"\d+", r"\\d+", escaped(value))):
            yield f"^{before}(?P<{group}>{pattern}){after}$"


def _holds(finding: ProbeFinding, with_claim: Iterable[Sample], without: Iterable[Contents]) -> bool:
    """Return True if the probe shows exactly the devices of each container, and nothing without a claim."""
    if finding.kind != "cpuset" and any(shown_devices(finding, each) for each in without):
        return False
    return all(
        shown_devices(finding, each.contents) == sorted(_value(device, finding.identity) for device in each.devices)
        for each in with_claim
    )


def _could_show(finding: ProbeFinding, devices: Iterable[PublishedDevice]) -> bool:
    """Return True if the values of all devices fit into the regular expression."""
    group = re.search(r"\(\?P<\w+>(.*?)\)", finding.pattern)
    return group is None or all(re.fullmatch(group[1], _value(each, finding.identity)) for each in devices)
