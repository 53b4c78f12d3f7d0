"""Run the suites with pytest as a process of its own, and read what it left behind. Called by `dra-testbed run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from testbed import folders, process
from testbed.conformance import events, report
from testbed.errors import TestbedError, UsageError
from testbed.models.report import DriverConformanceReport

_PYTEST_USAGE_ERROR = 4


@dataclass(frozen=True)
class SuiteRun:
    """What to run, on what, and where the report goes."""

    testbed: str
    report: Path
    driver: Path | None = None
    tiers: tuple[str, ...] = ()
    profile: str | None = None
    keyword: str = ""
    workers: int | str = 0  # or "auto"
    patience: float = 1.0
    paths: tuple[Path, ...] = ()

    def argv(self) -> Sequence[str]:
        """The command line; it can be pasted into a shell."""
        words = [sys.executable, "-P", "-m", "pytest", *map(str, self.paths or (folders.data("suites"),))]
        words += ["--testbed", self.testbed, "--report", str(self.report), "--patience", f"{self.patience:g}"]
        words += ["-p", "no:cacheprovider", "--import-mode=importlib", "--no-header", *plugin_options()]
        words += ["--driver", str(self.driver)] if self.driver else []
        words += [word for tier in self.tiers for word in ("--tier", tier)]
        words += ["--profile", self.profile] if self.profile else []
        words += ["-k", self.keyword] if self.keyword else []
        return [*words, "-n", str(self.workers)] if self.workers else words


def plugin_options() -> list[str]:
    """What pytest must be told to find the plugin: nothing where we are installed, its module in a bare checkout."""
    installed = metadata.entry_points(group="pytest11", name="dra_testbed")
    return [] if installed else ["-p", "testbed.plugin"]


def run_suites(wanted: SuiteRun, *, quiet: bool = False) -> DriverConformanceReport:
    """Run them to their end, or to the user's Ctrl-C, and make the report again from what happened.

    `quiet` keeps what pytest prints. The caller has reserved the report folder (`events.reserved`).
    """
    events.discard(wanted.report)
    if quiet:
        status = process.run(wanted.argv(), check=False, timeout=None, env=environment()).code
    else:
        status = process.call(wanted.argv(), env=environment())
    if (wanted.report / events.FILE).exists():
        return report.write(wanted.report)
    if status == _PYTEST_USAGE_ERROR:
        raise UsageError("pytest did not take these options; its reason is above")
    raise TestbedError(f"pytest ended with {status} before anything ran", hint="its last lines are above")


def environment() -> dict[str, str]:
    """Ours, with the way to this very package, and the word that the report folder is reserved."""
    found = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found), events.RESERVED_BY: str(os.getpid())}
