"""What a container shows of devices, and regular expressions for it. Pure; `probes` and `other_probes` find a probe with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import Sample
from testbed.onboarding.discovery.inference.identities import IdentityCandidate

KINDS = ("env", "deviceNode", "mount", "networkInterface")
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class ProbeFinding:
    """A probe: its key in the driver file, its regular expression or command, and the identity that it shows; None if it shows none.

    `example` is the text in which it was found.
    """

    kind: str
    pattern: str = ""
    command: tuple[str, ...] = ()
    identity: IdentityCandidate | None = None
    example: str = ""


def shown_devices(finding: ProbeFinding, contents: Contents) -> list[str]:
    """Return what the probe shows of devices in a container, sorted."""
    if finding.kind == "cpuset":
        return sorted(members(cpus(contents)))
    matches = re.finditer(finding.pattern, "\n".join(texts(finding.kind, contents)), re.MULTILINE)
    return sorted(next(iter(each.groupdict().values())) for each in matches)


def texts(kind: str, contents: Contents) -> list[str]:
    """Return what the probe of a kind looks at."""
    if kind == "env":
        return sorted(f"{name}={value}" for name, value in contents.variables.items())
    found = {"deviceNode": contents.device_nodes, "mount": contents.mounts, "networkInterface": contents.interfaces}
    return sorted(found[kind])


def new_texts(kind: str, sample: Sample, without: Iterable[Contents]) -> list[str]:
    """Return what a container has and those without a claim have not."""
    known = {text for each in without for text in texts(kind, each)}
    return [text for text in texts(kind, sample.contents) if text not in known]


def cpus(contents: Contents) -> str:
    """Return the list of the container's CPUs, such as 0-3,8."""
    lines = (each.partition(":") for each in contents.cpus)
    return next((value.strip() for name, _, value in lines if name.startswith("Cpus_")), "")


def members(text: str) -> set[str]:
    """Return the members of a list such as 0-3,8."""
    words = [word for word in text.split(",") if word]
    ranges = [_RANGE.fullmatch(word) for word in words]
    numbers = {str(number) for each in ranges if each for number in range(int(each[1]), int(each[2]) + 1)}
    return numbers | {word for word, is_range in zip(words, ranges, strict=True) if not is_range}


def general(text: str, sample: Sample) -> str:
    """Return a text as a regular expression, with patterns for the names of devices, UIDs of claims and numbers in it."""
    names = {sample.claim_uid, *(each.name for each in sample.devices)} - {""}
    spelled = sorted({word for each in names for word in (each, each.replace("-", "_"))}, key=len, reverse=True)
    varying = "|".join([*map(re.escape, spelled), r"\d+"])
    parts = re.split(f"((?i:{varying}))", text)
    return "".join(escaped(part) if number % 2 == 0 else like(part) for number, part in enumerate(parts))


def like(value: str) -> str:
    """Return a pattern for values of the same kind."""
    if value.isdigit():
        return r"\d+"
    if re.fullmatch(r"\w+", value):
        return r"\w+"
    return r"[\w-]+" if re.fullmatch(r"[\w-]+", value) else r"\S+"


def escaped(text: str) -> str:
    """Return a regular expression for the text itself, without needless backslashes."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)
