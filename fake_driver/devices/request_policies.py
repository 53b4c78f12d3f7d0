"""What is wrong with a requestPolicy, beside the value of its capacity. Pure; files are checked with it, and changes at run time."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fake_driver.devices.model import RequestPolicy
from fake_driver.devices.quantities import amount

_MOST_VALID = 10


def problems(policy: RequestPolicy, value: str) -> Iterator[str]:
    """Each as the rest of a sentence that begins with the policy; nothing when the API server will take it."""
    if policy.valid_values and policy.minimum:
        yield "has both validValues and validRange, but may have one of them"
    yield from _of_values(policy)
    yield from _of_range(policy, value)
    if any(_size(each) > _size(value) for each in (policy.default, *policy.valid_values, policy.maximum)):
        yield f"allows more than the {value} that there are"


def _of_values(policy: RequestPolicy) -> Iterator[str]:
    values = list(map(_size, policy.valid_values))
    if len(values) > _MOST_VALID:
        yield f"has {len(values)} validValues, but may have {_MOST_VALID}"
    if values != sorted(set(values)):
        yield "has validValues that do not rise"
    if values and _size(policy.default) not in values:
        yield "has a default that is none of the validValues"


def _of_range(policy: RequestPolicy, value: str) -> Iterator[str]:
    if not policy.minimum:
        return
    least, most, step = (_size(text) for text in (policy.minimum, policy.maximum or value, policy.step))
    if not least <= _size(policy.default) <= most:
        yield "has a default outside of validRange"
    if policy.step and not step:
        yield "has a step of nothing"
    if not step:
        return
    reached = (policy.default, policy.maximum) if policy.maximum else (policy.default,)
    if any((_size(each) - least) % step for each in reached):
        yield "has a default or max that no number of steps reaches from min"
    if least + step > _size(value):
        yield f"has a first step beyond the {value} that there are"


def _size(text: str) -> Fraction:
    return amount(text) or Fraction()
