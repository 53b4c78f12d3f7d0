"""Profiles, and their requirements, which must all exist."""

from __future__ import annotations

import pytest

from testbed import folders
from testbed.conformance import catalogue
from testbed.conformance.profiles import CORE, FULL, PROFILES, SMOKE, profile, select_profile
from testbed.conformance.requirement import Requirement
from testbed.errors import UsageError
from testbed.models.requirement_enums import Level, Tier


def test_every_requirement_of_a_profile_is_in_the_catalogue() -> None:
    assert PROFILES[SMOKE].ids < PROFILES[CORE].ids <= {each.id for each in _requirements()}


def test_core_adds_musts_and_at_most_nine_disruptive_tests() -> None:
    added = [each for each in _requirements() if profile(CORE).has(each.id) and not profile(SMOKE).has(each.id)]

    assert {each.level for each in added} == {Level.MUST}
    assert 5 <= sum(each.tier is Tier.DISRUPTIVE for each in added) <= 9


def test_smoke_has_no_disruptive_tests() -> None:
    assert not [each.id for each in _requirements() if profile(SMOKE).has(each.id) and each.tier is Tier.DISRUPTIVE]


def test_core_has_every_must_about_the_drivers_permissions() -> None:
    musts = {each.id for each in _requirements() if each.id.startswith("RBAC") and each.level is Level.MUST}

    assert musts <= PROFILES[CORE].ids


def _requirements() -> list[Requirement]:
    return [entry.requirement for entry in catalogue.read([folders.data("suites")]).entries]


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
