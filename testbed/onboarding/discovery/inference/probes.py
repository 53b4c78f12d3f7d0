"""Finds how a container shows its devices: the differences between containers with and without a claim, as a probe. Pure.

Each candidate is tried on all samples. It has to show exactly the devices of each container, and none without a claim.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import PublishedDevice, Sample
from testbed.onboarding.discovery.inference.identities import IdentityCandidate

KINDS = ("env", "deviceNode", "mount", "networkInterface")
_JOINING = r"[A-Za-z0-9]"  # a value beside one of these is a part of a longer word


@dataclass(frozen=True)
class ProbeFinding:
    """A probe: its key in the driver file, its regular expression, and the identity that it shows; None if it shows names.

    `example` is the text in which it was found.
    """

    kind: str
    pattern: str = ""
    identity: IdentityCandidate | None = None
    example: str = ""


def find_probe(
    samples: Collection[Sample], candidates: Sequence[IdentityCandidate], devices: Collection[PublishedDevice]
) -> ProbeFinding | None:
    """Return the best probe that shows exactly the devices of each container, and could show all devices; None if there is none."""
    with_claim = [each for each in samples if each.devices and not each.refusal]
    without = [each.contents for each in samples if not each.count and not each.refusal]
    if not with_claim or not without:
        return None
    proposed = _proposals(with_claim[0], without, _in_order(candidates, devices))
    found = (each for each in proposed if _holds(each, with_claim, without) and _could_show(each, devices))
    return next(found, None)


def additions(samples: Collection[Sample]) -> tuple[str, ...]:
    """Return in words what a claim adds to its container."""
    with_claim = [each.contents for each in samples if each.devices and not each.refusal]
    without = [each.contents for each in samples if not each.count and not each.refusal]
    return with_claim[0].additions_to(without[0]) if with_claim and without else ()


def _value(device: PublishedDevice, identity: IdentityCandidate | None) -> str:
    """Return what a container shows of a device: the value of an attribute, or its name."""
    return device.name if identity is None else _text(device.attributes[identity.attribute])


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
        yield from (
            ProbeFinding("cpuset", identity=each, example=_cpus(sample.contents)) for each in candidates if each
        )
    for kind in KINDS:
        known = {text for each in without for text in _texts(kind, each)}
        new = [text for text in _texts(kind, sample.contents) if text not in known]
        for identity in candidates:
            value = _value(sample.devices[0], identity)
            for text in new:
                for pattern in _patterns(text, value, "id" if identity else "name", sample):
                    yield ProbeFinding(kind, pattern, identity, text)


def _texts(kind: str, contents: Contents) -> list[str]:
    """Return what the probe of a kind looks at."""
    if kind == "env":
        return sorted(f"{name}={value}" for name, value in contents.variables.items())
    found = {"deviceNode": contents.device_nodes, "mount": contents.mounts, "networkInterface": contents.interfaces}
    return sorted(found[kind])


def _patterns(text: str, value: str, group: str, sample: Sample) -> Iterator[str]:
    """Yield regular expressions for a text that contains a value."""
    for found in re.finditer(rf"(?<!{_JOINING}){re.escape(value)}(?!{_JOINING})", text) if value else ():
        before, after = (_general(part, sample) for part in (text[: found.start()], text[found.end() :]))
        for like in (_like(value), re.sub(r"\d+", r"\\d+", _escaped(value))):
            yield f"^{before}(?P<{group}>{like}){after}$"


def _general(text: str, sample: Sample) -> str:
    """Return a text as a regular expression, with patterns for the names of devices, UIDs of claims and numbers in it."""
    names = {sample.claim_uid, *(each.name for each in sample.devices)} - {""}
    spelled = sorted({word for each in names for word in (each, each.replace("-", "_"))}, key=len, reverse=True)
    varying = "|".join([*map(re.escape, spelled), r"\d+"])
    parts = re.split(f"((?i:{varying}))", text)
    return "".join(_escaped(part) if number % 2 == 0 else _like(part) for number, part in enumerate(parts))


def _like(value: str) -> str:
    """Return a pattern for values of the same kind."""
    if value.isdigit():
        return r"\d+"
    if re.fullmatch(r"\w+", value):
        return r"\w+"
    return r"[\w-]+" if re.fullmatch(r"[\w-]+", value) else r"\S+"


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


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
    like = re.search(r"\(\?P<\w+>(.*?)\)", finding.pattern)
    return like is None or all(re.fullmatch(like[1], _value(each, finding.identity)) for each in devices)


def shown_devices(finding: ProbeFinding, contents: Contents) -> list[str]:
    """Return what the probe shows of devices in a container, sorted."""
    if finding.kind == "cpuset":
        return sorted(map(str, _numbers(_cpus(contents))))
    matches = re.finditer(finding.pattern, "\n".join(_texts(finding.kind, contents)), re.MULTILINE)
    return sorted(next(iter(each.groupdict().values())) for each in matches)


def _cpus(contents: Contents) -> str:
    lines = (each.partition(":") for each in contents.cpus)
    return next((value.strip() for name, _, value in lines if name.startswith("Cpus_")), "")


def _numbers(ranges: str) -> set[int]:
    """Return the numbers in a list such as 0-2,5."""
    pairs = (part.partition("-") for part in ranges.split(",") if part)
    return {number for first, _, last in pairs for number in range(int(first), int(last or first) + 1)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
