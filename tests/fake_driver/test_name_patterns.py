import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.name_patterns import DNS_LABEL, DNS_SUBDOMAIN, DRIVER_NAME, QUALIFIED_NAME, UID, matches


@pytest.mark.parametrize("uid", ["9f4f2a4e-5c1d-4d6e-8d55-000000000001", "0123456789abcdef0123456789abcdef", "a"])
def test_uids_in_use_match(uid: str) -> None:
    assert matches(UID, uid)


@pytest.mark.parametrize("text", ["", ".", "..", "../x", "a/b", "a.b", "-a", "a-", "a\n", "a" * 64, "ä", None, 7])
def test_text_that_could_escape_a_folder_is_no_uid(text: object) -> None:
    assert not matches(UID, text)


@given(st.text(max_size=70))
def test_matching_text_is_safe_in_a_path(text: str) -> None:
    for pattern in (UID, DNS_LABEL, DNS_SUBDOMAIN, DRIVER_NAME):
        if matches(pattern, text):
            assert "/" not in text
            assert text.isascii()
            assert text not in {"", ".", ".."}


@pytest.mark.parametrize(
    ("name", "good"), [("gpu.example", True), ("1gpu.example", False), ("a" * 64, False), ("Gpu", False)]
)
def test_a_driver_name_is_a_valid_cdi_vendor(name: str, good: bool) -> None:
    assert matches(DRIVER_NAME, name) is good


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("model", True),
        ("_x1", True),
        ("resource.kubernetes.io/pcieRoot", True),
        ("1x", False),
        ("a-b", False),
        ("x" * 33, False),
        ("/x", False),
        ("a.b/", False),
        ("a/b/c", False),
        (f"{'a' * 64}/x", False),
    ],
)
def test_attributes_are_c_identifiers_with_or_without_a_domain(name: str, good: bool) -> None:
    assert matches(QUALIFIED_NAME, name) is good
