"""The rules of the API for a requestPolicy. Pure; they apply to hardware files and to changes at run time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fake_driver.devices.model import RequestPolicy
from fake_driver.devices.quantities import amount

_MOST_VALID = 10


def problems(policy: RequestPolicy, value: str) -> Iterator[str]:
    """Return what is wrong with the policy of a capacity with this value, as phrases that follow the policy's name."""
    if policy.valid_values and policy.minimum:
        yield "has both validValues and validRange, but must have at most one of them"
    yield from _of_values(policy)
    yield from _of_range(policy, value)
    if any(_size(each) > _size(value) for each in (policy.default, *policy.valid_values, policy.maximum)):
        yield f"allows more than the capacity of {value}"


def _of_values(policy: RequestPolicy) -> Iterator[str]:
    values = list(map(_size, policy.valid_values))
    if len(values) > _MOST_VALID:
        yield f"has {len(values)} validValues, but may have at most {_MOST_VALID}"
    if values != sorted(set(values)):
        yield "has validValues that are not in ascending order"
    if values and _size(policy.default) not in values:
        yield "has a default that is not one of the validValues"


def _of_range(policy: RequestPolicy, value: str) -> Iterator[str]:
    if not policy.minimum:
        return
    least, most, step = (_size(text) for text in (policy.minimum, policy.maximum or value, policy.step))
    if not least <= _size(policy.default) <= most:
        yield "has a default outside of validRange"
    if policy.step and not step:
        yield "has a step of 0"
    if not step:
        return
    reached = (policy.default, policy.maximum) if policy.maximum else (policy.default,)
    if any((_size(each) - least) % step for each in reached):
        yield "has a default or max that is not min plus a multiple of step"
    if least + step > _size(value):
        yield f"has a min and step that together exceed the capacity of {value}"


def _size(text: str) -> Fraction:
    return amount(text) or Fraction()
