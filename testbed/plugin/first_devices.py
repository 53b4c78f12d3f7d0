"""Try a first device on each node before tests run, so that a wrong probe ends the run at once instead of failing most tests."""

from __future__ import annotations

from testbed import bringup
from testbed.conformance.context import RunContext
from testbed.errors import TestbedError, UsageError
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Tier
from testbed.onboarding.checks.all_checks import use_devices, world_on
from testbed.onboarding.checks.finding import Blame, Finding, with_lines
from testbed.onboarding.checks.trials import QUICK
from testbed.providers.base import Capability

_USING_DEVICES = {Tier.E2E, Tier.DISRUPTIVE}


def check(context: RunContext) -> list[str]:
    """Return notes about first devices that could not be used. Raise UsageError if the driver file is wrong.

    What the driver does wrong is only a note here: tests judge it, with more time and with repetitions.
    """
    findings = _findings(context)
    mistakes = [each.describe(context.driver_file) for each in findings if each.blame is Blame.FILE]
    if mistakes:
        raise UsageError("\n  ".join(["the driver file does not match the driver:", *mistakes]))
    return [each.describe(context.driver_file) for each in findings]


def _findings(context: RunContext) -> list[Finding]:
    request, testbed = context.request, bringup.attach(context.request.testbed)
    uses_devices = not request.tiers or not _USING_DEVICES.isdisjoint(request.tiers)
    if not request.check or not uses_devices or Capability.MAKE_OBJECTS not in testbed.cluster.capabilities:
        return []
    world = world_on(testbed, load_driver_file(context.driver_file), f"{context.session}-check")
    try:
        return with_lines(use_devices(world, QUICK), context.driver_file)
    except TestbedError as lost:
        if isinstance(lost, UsageError):
            raise
        return [Finding(Blame.NOTE, f"no first device was tried: {lost.what}")]
