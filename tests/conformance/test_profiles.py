"""Profiles, and their requirements, which must all exist."""

from __future__ import annotations

import pytest

from testbed import folders
from testbed.conformance import catalogue
from testbed.conformance.profiles import CORE, FULL, PROFILES, profile, select_profile
from testbed.errors import UsageError


def test_every_requirement_of_a_profile_is_in_the_catalogue() -> None:
    known = {entry.requirement.id for entry in catalogue.read([folders.data("suites")]).entries}

    assert PROFILES[CORE].ids <= known


def test_core_has_some_requirements_and_full_has_all() -> None:
    assert not profile(CORE).has("X-001")
    assert profile(FULL).has("X-001")


def test_an_unknown_profile_is_refused_with_similar_ones() -> None:
    with pytest.raises(UsageError, match="there is no profile cor") as refused:
        profile("cor")
    assert "core" in refused.value.hint


@pytest.mark.parametrize(("narrowed_by", "name"), [([], CORE), (["", ""], CORE), (["two_cats", ""], FULL)])
def test_the_default_is_core_unless_other_options_narrow_the_tests(narrowed_by: list[str], name: str) -> None:
    assert select_profile(None, narrowed_by) == name
    assert select_profile(CORE, narrowed_by) == CORE


def test_an_unknown_profile_is_never_chosen() -> None:
    with pytest.raises(UsageError, match="there is no profile cor"):
        select_profile("cor", [])
