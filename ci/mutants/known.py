"""List all mutants, each with one sentence that says what is wrong. For the rest of ci.mutants and the tests of the suites."""

from __future__ import annotations

from fake_driver.crash_points import CRASH_POINTS
from fake_driver.mutants.selection import ALL_MUTANTS
from testbed import folders
from testbed.conformance import Requirement
from testbed.models.requirement_enums import Subject

CLUSTERS = folders.data("manifests") / "clusters" / "mutants"
GATE_OFF = "gate-off:"
# Crashes are no mutants: a correct driver must survive them.
_CRASHES = {f"crash-{point}" for point in CRASH_POINTS}

# No pod shows these. They wait for tests of the wire tier.
WAITING = frozenset({"one-bad-claim-fails-all", "publish-a-generation-too-low", "unprepare-by-name"})
# These need other hardware: a driver file in manifests/drivers/mutants has both.
OF_SHAPES = frozenset({"no-env-for-passthrough"})
# Nearly every test fails on these, so they do not show what a test looks at.
DOING_NOTHING = frozenset(
    {"forget-registration-socket", "only-answers", "refuses-everything", "registers-only", "slices-missing"}
)


def drivers() -> dict[str, str]:
    """Return the mutants of the driver."""
    return {name: _sentence(fault.__doc__ or "") for name, fault in ALL_MUTANTS.items() if name not in _CRASHES}


def clusters() -> dict[str, str]:
    """Return the mutants of the cluster: policies that change what is written. The first line of each manifest says how."""
    return {path.stem: path.read_text().splitlines()[0].removeprefix("# ") for path in sorted(CLUSTERS.glob("*.yaml"))}


def every() -> dict[str, str]:
    """Return the mutants of the driver and of the cluster."""
    return {**drivers(), **clusters()}


def about(name: str) -> str:
    """Return what is wrong with a mutant. Raise KeyError if there is no mutant with this name."""
    if name.startswith(GATE_OFF):
        return f"The feature gate {name.removeprefix(GATE_OFF)} is off."
    return every()[name]


def subject_problem(requirement: Requirement) -> str:
    """Describe why the mutants do not suit the subject of a requirement; '' if they do.

    The failure of a wrong driver says nothing about a requirement of the cluster, and the other way round. A driver that does nothing
    fails nearly every test, which does not show that the test looks at what its requirement is about.
    """
    named = set(requirement.mutants)
    of_drivers = named & drivers().keys()
    if requirement.about is Subject.CLUSTER and of_drivers:
        return (
            f"{requirement.id} is about the cluster, but names mutants of the driver: {', '.join(sorted(of_drivers))}"
        )
    if requirement.about is Subject.CLUSTER and named and not any(map(_is_of_cluster, named)):
        return f"{requirement.id} is about the cluster, but names no mutant of the cluster"
    if requirement.about is Subject.DRIVER and named and not of_drivers:
        return f"{requirement.id} is about the driver, but names no mutant of the driver"
    if requirement.about is Subject.DRIVER and named and not of_drivers - DOING_NOTHING:
        return f"{requirement.id} names only mutants of the driver that do nothing: {', '.join(sorted(of_drivers))}"
    return ""


def _is_of_cluster(name: str) -> bool:
    return name in clusters() or name.startswith(GATE_OFF)


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())
