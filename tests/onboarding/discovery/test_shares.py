from fractions import Fraction

import pytest

from testbed.onboarding.discovery.inference.shares import amounts, quantity

RANGE = {"validRange": {"min": "2", "max": "8", "step": "2"}}


@pytest.mark.parametrize(
    ("whole", "policy", "expected"),
    [
        (16, {}, {"half": 8}),
        (16, RANGE, {"half": 8, "uneven": 3, "rounded": 4, "tooMuch": 10}),
        (8, RANGE, {"half": 4, "uneven": 3, "rounded": 4}),
        (16, {"validValues": ["1", "4", "7"]}, {"half": 7, "uneven": 2, "rounded": 4, "tooMuch": 10}),
        (3, {"validRange": {"min": "1", "step": "1"}}, None),
        (1, {}, None),
        (16, {"validValues": ["1", "2"]}, None),
    ],
)
def test_amounts_follow_the_request_policy(
    whole: int, policy: dict[str, object], expected: dict[str, int] | None
) -> None:
    assert amounts(Fraction(whole), policy) == expected


def test_quantities_are_written_as_people_do() -> None:
    assert [quantity(each) for each in (1 << 33, 3 << 29, 1000, 0)] == ["8Gi", "1536Mi", "1000", "0"]
