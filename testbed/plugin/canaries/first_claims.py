"""Whether any claim of the driver under test can be prepared. If none can, each further test would only repeat that.

The controller tries after the first failures, and writes what it found to the report folder, where the other processes read it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.conformance.report_folder import replace_file
from testbed.drivers.ready import driver_pods, log_tail
from testbed.errors import Blocked, TestbedError
from testbed.onboarding.checks.trials import Cause, FailedTrial, try_devices
from testbed.providers.base import Capability
from testbed.vocabulary.world import World
from testbed.waiting import Budget

FILE = ".nothing-prepared.json"
_MOST_NODES = 3
_CLAIMS = Budget(
    "first claims are prepared", 20, "a run that can judge nothing must end soon; a test has waited longer"
)
_TRIALS = 3  # after these failures, tests say themselves what is wrong


@dataclass(frozen=True)
class NothingPrepared:
    """The requirement whose test showed first that no claim can be prepared, and what the driver did."""

    requirement: str
    seen: str

    def __str__(self) -> str:
        return f"no claim of the driver can be prepared: see {self.requirement}\n  last seen: {self.seen}"


class FirstClaims:
    """Tries after the first failures of a run whether the driver can prepare a claim on any node."""

    def __init__(self, world: Callable[[], World], folder: Path) -> None:
        self._world, self._folder = world, folder
        self._trials_left = _TRIALS
        self.found: NothingPrepared | None = None

    def try_after(self, requirement: str) -> str:
        """Return what the driver did and the end of its log if it can prepare no claim; '' if it can, or if that is not known."""
        if not self._trials_left or self.found:
            return ""
        self._trials_left -= 1
        with contextlib.suppress(TestbedError):  # the verdict of the test stays
            world = self._world()
            seen = self._why_none(world)
            if seen:
                self.found = NothingPrepared(requirement, seen)
                replace_file(self._folder / FILE, json.dumps(dataclasses.asdict(self.found)))
                return "\n".join([f"no claim of the driver can be prepared: {seen}", *_logs(world)])
        return ""

    def _why_none(self, world: World) -> str:
        """Return why the driver prepared none of the first devices; '' if it prepared one, or if something else is the reason."""
        if not world.cluster or Capability.MAKE_OBJECTS not in world.cluster.capabilities:
            return ""
        tried = try_devices(world, sorted(world.nodes)[:_MOST_NODES], _CLAIMS)
        failed = [each for each in tried if isinstance(each, FailedTrial) and not each.ran]
        if len(failed) < len(tried):
            self._trials_left = 0
            return ""
        return next((f"on {each.node}: {each.why}" for each in failed if each.cause is Cause.DRIVER), "")


def block_if_nothing_is_prepared(folder: Path) -> None:
    """Raise Blocked if the controller of this run found that no claim can be prepared."""
    try:
        found = NothingPrepared(**json.loads((folder / FILE).read_text()))
    except FileNotFoundError:
        return
    raise Blocked(str(found))


def discard(folder: Path) -> None:
    """Remove what an earlier run found."""
    (folder / FILE).unlink(missing_ok=True)


def _logs(world: World) -> list[str]:
    """Return the last lines of the log of each pod of the driver, on the first nodes."""
    pods = driver_pods(world.kube, world.driver_file)[:_MOST_NODES]
    return [text for each in pods if (text := log_tail(world.kube, world.driver_file, each))]
