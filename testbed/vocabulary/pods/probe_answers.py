"""Devices behind answers of probes that name none: a set, a count, an exit code. They are judged by comparison. Pure; Container uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import Device

_UNKNOWN = "an unknown pool"


@dataclass(frozen=True)
class Answer:
    """What a container shows, the devices that are allocated to it, and its claims; none if it refers to no claim."""

    members: frozenset[str]
    allocated: frozenset[Device]
    claims: frozenset[str] = frozenset()


def from_exit_code(answer: Answer, driver: str) -> frozenset[Device]:
    """Return the container's devices if its probe succeeded; an unknown one if it has none."""
    return (answer.allocated or frozenset(_unknown(driver, 1))) if answer.members else frozenset()


def from_count(answer: Answer, driver: str) -> frozenset[Device]:
    """Return as many devices as the probe counted: first the container's own, then unknown ones."""
    own, count = sorted(answer.allocated), len(answer.members)
    return frozenset([*own[:count], *_unknown(driver, count - len(own))])


def from_set(answer: Answer, others: Iterable[Answer], driver: str) -> frozenset[Device]:
    """Return the container's devices, and those of others whose members it shows too; `others` are containers on the same node.

    It sees none if it shows nothing, or only what a container without devices shows. If it has the same devices from the same claims as
    another container but shows something else, one of the two is wrong, so it also sees an unknown device.
    """
    every = list(others)
    if not answer.members or any(answer.members == each.members for each in every if not each.allocated):
        return frozenset()
    foreign = {device for each in every if _overlap(answer, each) for device in each.allocated}
    alike = (each for each in every if (each.allocated, each.claims) == (answer.allocated, answer.claims))
    differs = any(each.members != answer.members for each in alike)
    unknown = _unknown(driver, 1) if answer.allocated and differs else ()
    return frozenset({*answer.allocated, *foreign, *unknown})


def _overlap(one: Answer, other: Answer) -> bool:
    """Return True if two containers without common devices show common members."""
    return not frozenset(one.allocated) & other.allocated and bool(one.members & other.members)


def _unknown(driver: str, count: int) -> Iterator[Device]:
    return (Device(driver, _UNKNOWN, f"device {number + 1}") for number in range(count))
