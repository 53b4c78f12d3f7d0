"""Judge what first devices did on each node: is the driver file wrong, or the driver? Pure; `trials` observes.

The driver file is blamed only if the driver did something that the probe does not show on any node. A driver that refuses, stays
silent, or adds nothing to a container has failed a requirement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from testbed.models.driver.probe import Probe, Without
from testbed.models.driver_file import DriverFile
from testbed.onboarding.checks.finding import Blame, Finding
from testbed.onboarding.checks.trials import CONTAINER, Cause, FailedTrial, Trial
from testbed.vocabulary.pods.probe_command import NOT_STARTED
from testbed.vocabulary.pods.probe_results import ProbeResult

_FIRST = "CLAIM-001"  # a pod runs with a claim, and its container sees the device
_BLAMES = {
    Cause.DRIVER: Blame.DRIVER,
    Cause.ENVIRONMENT: Blame.ENVIRONMENT,
    Cause.UNKNOWN: Blame.UNTRIED,
    Cause.NO_DEVICE: Blame.UNTRIED,
}


def findings_of(trials: Sequence[Trial | FailedTrial], driver_file: DriverFile) -> list[Finding]:
    """Return what is wrong, for each ordinary class."""
    seen = [each for each in trials if isinstance(each, Trial)]
    tried = {each.device_class for each in seen}
    failed = [_failed(each, tried) for each in trials if isinstance(each, FailedTrial)]
    groups: dict[tuple[str, bool], list[Trial]] = {}
    for each in seen:
        groups.setdefault((each.device_class, each.probe is driver_file.probe), []).append(each)
    return [*failed, *(found for each in groups.values() for found in _of_probe(each))]


def _of_probe(seen: Sequence[Trial]) -> Iterator[Finding]:
    """Yield what is wrong, from the trials of one class with one probe."""
    blind = [each for each in seen if each.shows_nothing_new]
    if not blind:
        return
    if isinstance(blind[0].probe, Without):  # it need not show the devices of a claim
        yield _by_file(blind[0], Blame.NOTE)
        return
    if len(blind) < len(seen) or not any(each.additions for each in blind) or all(map(_is_by_driver, blind)):
        yield from map(_by_driver, blind)
    else:
        yield _by_file(blind[0])


def _failed(trial: FailedTrial, tried: Collection[str]) -> Finding:
    """Return why a device could not be used. A node without a free device costs nothing if the class was tried on another one."""
    is_enough = trial.cause is Cause.NO_DEVICE and trial.device_class in tried
    blame = Blame.NOTE if is_enough else _BLAMES[trial.cause]
    requirement = _FIRST if blame is Blame.DRIVER else ""
    return Finding(blame, f"{_named(trial)} could not be used: {trial.why}", requirement=requirement)


def _is_by_driver(trial: Trial) -> bool:
    """Return True if the driver did not add the probe's program, or did not keep devices from the container without a claim.

    A command may list devices of the node that its container cannot use.
    """
    ids, probe = trial.with_claim.ids, trial.probe
    if isinstance(probe, Probe) and probe.program_from_driver and trial.with_claim.code in NOT_STARTED:
        return True
    if probe.command or not ids:
        return False
    return bool(probe.cpuset or probe.metadata) or ids <= trial.published


def _by_driver(trial: Trial) -> Finding:
    """Return the finding that the driver did too little: the claim was prepared, and made no difference."""
    added = " and ".join(trial.additions)
    ids = ", ".join(sorted(trial.with_claim.ids))
    difference = f"the claim adds {added}" if added else "the claim adds nothing to the container"
    both = f", and a container without a claim sees {ids} too" if ids else ""
    what = f"{_named(trial)} was prepared, but makes no difference to the probe: {difference}{both}"
    return Finding(Blame.DRIVER, what, requirement=_FIRST)


def _by_file(trial: Trial, blame: Blame = Blame.FILE) -> Finding:
    """Return the finding that the probe does not show what the driver did."""
    seen, probe = trial.with_claim, trial.probe
    key = probe.key.replace("spec.probe", "spec.probe.without") if isinstance(probe, Without) else probe.key
    added = f"the claim adds {' and '.join(trial.additions)}"
    if seen.code in NOT_STARTED:
        error = (seen.errors or seen.printed).strip() or f"exit code {seen.code}"
        return Finding(blame, f"{probe.program} could not be started in a container: {error}; {added}", key)
    result = ProbeResult(seen.pod, CONTAINER, seen.printed, probe.pattern, code=seen.code, errors=seen.errors)
    shows = f"shows {', '.join(sorted(seen.ids))}" if seen.ids else "shows no device"
    what = f"{_named(trial)} was prepared, but the probe {shows} in its container and in one without a claim"
    return Finding(blame, f"{what}; {result.summary}; {added}", key)


def _named(trial: Trial | FailedTrial) -> str:
    return f"a device of class {trial.device_class} on {trial.node}"
