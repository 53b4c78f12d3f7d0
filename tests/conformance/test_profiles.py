"""Profiles: named sets of requirements, all of which exist."""

from __future__ import annotations

import pytest

from testbed import folders
from testbed.conformance import catalogue
from testbed.conformance.profiles import CORE, FULL, PROFILES, default, profile
from testbed.errors import UsageError


def test_every_requirement_of_a_profile_is_in_the_catalogue() -> None:
    known = {entry.requirement.id for entry in catalogue.read([folders.data("suites")]).entries}

    assert PROFILES[CORE].ids <= known


def test_core_is_a_part_and_full_is_all() -> None:
    assert not profile(CORE).has("X-001")
    assert profile(FULL).has("X-001")


def test_an_unknown_profile_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no profile cor") as refused:
        profile("cor")
    assert "core" in refused.value.hint


@pytest.mark.parametrize(("words", "name"), [([], CORE), (["", ""], CORE), (["two_cats", ""], FULL)])
def test_who_says_which_tests_he_wants_gets_them(words: list[str], name: str) -> None:
    assert default(words) == name
