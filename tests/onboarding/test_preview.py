"""What a run would judge is known from the driver file alone, with one reason for everything else."""

from __future__ import annotations

import pytest

from testbed.errors import UsageError
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Subject
from testbed.onboarding.preview import count_levels, preview
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

FILE = load_driver_file(cluster.driver_path())


def test_what_the_file_does_not_declare_is_not_judged_for_that_reason() -> None:
    found = preview(with_values(FILE, configuration=None), "1.37", "core")
    reasons = found.reasons(Subject.DRIVER)
    (reason,) = [each for each in reasons if "invalid-configuration" in each]
    assert [each.requirement.id for each in reasons[reason]] == ["CONFIG-020"]
    assert "CONFIG-020" not in {each.requirement.id for each in found.judged(Subject.DRIVER)}
    assert ("configuration", "no", "spec.configuration.one") in set(found.features)


def test_an_exemption_is_shown() -> None:
    found = preview(with_values(FILE, exempt=("shared-claims",)), "1.37", "core")
    assert ("shared-claims", "exempt", "spec.exempt") in set(found.features)
    row = next(each for each in found.as_data() if each["id"] == "SHARE-001")
    assert (row["judged"], row["exempt"]) == (False, True)


def test_an_older_version_has_fewer_requirements_and_says_which_it_needs() -> None:
    new, old = (preview(FILE, version, "full") for version in ("1.37", "1.34"))
    assert len(old.judged(Subject.DRIVER)) < len(new.judged(Subject.DRIVER))
    assert any(each.startswith("needs Kubernetes 1.3") for each in old.reasons(Subject.DRIVER))


def test_levels_are_counted() -> None:
    found = preview(FILE, "1.37", "smoke")
    assert count_levels(found.judged(Subject.DRIVER)).startswith("MUST ")
    assert count_levels([]) == "none"


@pytest.mark.parametrize(("version", "gates"), [("1.20", {}), ("1.37", {"NoSuchGate": True})])
def test_a_wrong_version_or_gate_is_refused(version: str, gates: dict[str, bool]) -> None:
    with pytest.raises(UsageError):
        preview(FILE, version, "core", gates)
