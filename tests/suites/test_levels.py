"""The levels of requirements: outcomes for containers are MUST, and docs/trust.md has the levels of the suites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed import folders
from testbed.conformance import Requirement, catalogue
from testbed.models.requirement_enums import Level, Subject

REQUIREMENTS = {each.requirement.id: each.requirement for each in catalogue.read([folders.data("suites")]).every}
TRUST = (Path(__file__).parents[2] / "docs/trust.md").read_text()
_ID = re.compile(r"([A-Z]+)-(\d{3})(?: to -(\d{3})| to \1-(\d{3}))?")


def _ids(text: str) -> list[str]:
    """Return the IDs in a text, with those of ranges such as RBAC-002 to -004."""
    found = []
    for prefix, first, last, also_last in _ID.findall(text):
        numbers = range(int(first), int(last or also_last or first) + 1)
        found += [name for name in (f"{prefix}-{number:03}" for number in numbers) if name in REQUIREMENTS]
    return found


def _changed() -> list[tuple[str, str]]:
    """Return ID and level of each row of the table of changed levels."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| .+ \|$", TRUST.split("### Changed levels")[1], re.MULTILINE)
    return [(name, now) for names, _, now in rows for name in _ids(names)]


def _permissions() -> list[tuple[str, str]]:
    """Return ID and level of each row of the table of permissions."""
    section = TRUST.split("### Permissions")[1].split("### Changed levels")[0]
    rows = re.findall(r"^\| (.+?) \| .+ \| (MUST|SHOULD|MAY) .+ \|$", section, re.MULTILINE)
    return [(name, level) for names, level in rows for name in _ids(names)]


@pytest.mark.parametrize(
    "name",
    [
        "CLAIM-010",
        "CLAIM-012",
        "CLAIM-013",
        "CLAIM-014",
        "PREP-003",
        "PREP-004",
        "PREP-007",
        "PREP-008",
        "PRESCHED-009",
    ],
)
def test_that_a_container_gets_its_devices_and_no_others_is_a_must(name: str) -> None:
    assert (REQUIREMENTS[name].level, REQUIREMENTS[name].about) == (Level.MUST, Subject.DRIVER)


@pytest.mark.parametrize("name", ["PREP-001", "PREP-002", "PREP-108", "PART-008"])
def test_a_guard_against_faults_of_the_scheduler_is_a_should(name: str) -> None:
    assert REQUIREMENTS[name].level is Level.SHOULD


@pytest.mark.parametrize("name", ["CONFIG-003", "CONFIG-004", "PREP-116"])
def test_the_order_of_configuration_is_judged_only_if_it_is_declared(name: str) -> None:
    assert "configuration-precedence" in REQUIREMENTS[name].features


@pytest.mark.parametrize("each", REQUIREMENTS.values(), ids=lambda each: each.id)
def test_no_must_about_the_driver_is_about_the_wording_of_an_error(each: Requirement) -> None:
    if each.level is Level.MUST and each.about is Subject.DRIVER:
        assert not re.search(r"\berror must name|\bnames the (invalid )?field", each.sentence)


def test_the_page_explains_every_changed_level() -> None:
    changed = dict(_changed())

    assert len(changed) > 40
    for name, now in changed.items():
        assert now.split(",")[0] == REQUIREMENTS[name].level
        assert ("cluster" in now) is (REQUIREMENTS[name].about is Subject.CLUSTER)


def test_the_page_gives_the_reason_for_the_level_of_each_permission() -> None:
    reasons = dict(_permissions())

    assert {name for name in REQUIREMENTS if name.startswith("RBAC")} - reasons.keys() == {"RBAC-001"}
    assert all(level == REQUIREMENTS[name].level for name, level in reasons.items())
