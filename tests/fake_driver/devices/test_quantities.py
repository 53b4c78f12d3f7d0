from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.devices.quantities import amount, canonical

suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E2", "e-2"])
numbers = st.one_of(st.integers(0, 99_999).map(str), st.decimals(0, 1000, places=2).map(str))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("80Gi", "80Gi"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1000", "1k"), ("0.5", "500m"), ("12500M", "12500M"),
        ("1e3", "1e3"), ("10000e0", "10e3"), ("1e2", "100"), ("0", "0"), ("0Gi", "0"), ("0.5Ki", "512"), ("1E", "1E"), ("1E3", "1e3"),
    ],
)  # fmt: skip
def test_a_quantity_has_the_canonical_form_of_the_api_server(text: str, written: str) -> None:
    assert canonical(text) == written


@pytest.mark.parametrize(
    "text", ["", "much", "1.2.3", "-1", "1 Gi", "1gi", "0.3n", "0.3Ki", "10E", None, 1, "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_an_invalid_quantity_or_one_that_would_be_rounded_is_refused(text: object) -> None:
    assert amount(text) is None


@given(st.builds("".join, st.tuples(numbers, suffixes)))
def test_the_canonical_form_has_the_same_value_and_is_stable(text: str) -> None:
    found = amount(text)
    if found is not None:
        assert amount(canonical(text)) == found
        assert canonical(canonical(text)) == canonical(text)


def test_suffixes_are_powers_of_two_and_of_ten() -> None:
    assert [amount(text) for text in ("1Ki", "1k", "1m", "2e-1")] == [1024, 1000, Fraction(1, 1000), Fraction(1, 5)]
