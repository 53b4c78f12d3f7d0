"""All mutants there are, each with one sentence of what is wrong: of the driver, of the cluster, and features that are off."""

from __future__ import annotations

from fake_driver.mutants.selection import ALL_MUTANTS
from fake_driver.preparing.driver import CRASH_POINTS
from testbed import folders

CLUSTERS = folders.data("manifests") / "clusters" / "mutants"
GATE_OFF = "gate-off:"
# Crashes are no mutants: a driver that is killed has to be right.
_CRASHES = {f"crash-{point}" for point in CRASH_POINTS}

# No pod shows these: they wait for the tests that call a driver as the kubelet does.
WAITING = frozenset({"one-bad-claim-fails-all", "publish-a-generation-too-low", "unprepare-by-name"})


def drivers() -> dict[str, str]:
    """The mutants of the driver."""
    return {name: _sentence(fault.__doc__ or "") for name, fault in ALL_MUTANTS.items() if name not in _CRASHES}


def clusters() -> dict[str, str]:
    """The mutants of the cluster: a manifest each, of a policy that changes what is written. Its first line says how."""
    return {path.stem: path.read_text().splitlines()[0].removeprefix("# ") for path in sorted(CLUSTERS.glob("*.yaml"))}


def every() -> dict[str, str]:
    """Those that have a name of their own."""
    return {**drivers(), **clusters()}


def about(name: str) -> str:
    """What is wrong with a mutant; KeyError where there is none of that name."""
    if name.startswith(GATE_OFF):
        return f"The feature gate {name.removeprefix(GATE_OFF)} is off."
    return every()[name]


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())
