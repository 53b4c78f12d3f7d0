from __future__ import annotations

from fractions import Fraction

import pytest

from testbed.errors import DriverFailed
from testbed.vocabulary.driver.quantities import amount


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("5Gi", 5 * 1024**3),
        ("100G", 100 * 10**9),
        ("250m", Fraction(1, 4)),
        ("1.5k", 1500),
        ("2e3", 2000),
        (8, 8),
    ],
)
def test_a_quantity_is_a_number(text: object, number: Fraction) -> None:
    assert amount(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "5 Gi", "5gi", None])
def test_an_invalid_quantity_blames_the_driver(text: object) -> None:
    with pytest.raises(DriverFailed, match="not a quantity"):
        amount(text)
