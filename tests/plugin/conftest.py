"""Run pytest in a test: in a folder with a suite, on a testbed in memory."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import bringup
from testbed.conformance.events import read
from testbed.models.report import DriverConformanceReport, RequirementReport
from testbed.plugin import startup  # noqa: F401 - imported here once, and not again by each inner pytest
from testbed.reporting import report
from testbed.runs.pytest_process import plugin_options
from testbed.waiting import set_patience
from tests.fakes.cluster import DEVICES_PER_NODE

ROOT = Path(__file__).parents[2]
_CONFTEST = """
from testbed import bringup
from tests.fakes import cluster
made = cluster.make({fault!r}, {devices})
bringup.attach = lambda name: made
"""
_SUITE = """
from testbed.conformance import requirement, MUST, SHOULD, E2E, WIRE, Capability
import pytest

def required(number, **facts):
    return requirement(f"T-{{number:03}}", "It works.", **{{"level": MUST, "tier": E2E, "source": "here", **facts}})

{tests}
"""


class Run:
    """The output and the report of an inner pytest."""

    def __init__(self, result: pytest.RunResult, folder: Path) -> None:
        self.result, self.folder = result, folder
        self.output = result.stdout.str() + result.stderr.str()

    @property
    def report(self) -> DriverConformanceReport:
        return report.build(read(self.folder))

    @property
    def verdicts(self) -> dict[str, str | None]:
        return {row.id: row.verdict and row.verdict.value for row in self.report.requirements}

    def row(self, wanted: str) -> RequirementReport:
        return next(row for row in self.report.requirements if row.id == wanted)


@pytest.fixture(autouse=True)
def _findable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the inner pytest find this checkout with its fakes from another folder."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture(autouse=True)
def _untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore what an inner pytest in the same process changes."""
    monkeypatch.setattr(bringup, "attach", bringup.attach)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    set_patience(1.0)


@pytest.fixture
def judge(pytester: pytest.Pytester) -> Callable[..., Run]:
    """Return a function that runs tests as a suite on a testbed with a fault, in the same process or a new one."""

    def run(
        tests: str, *arguments: str, fault: str = "", devices: int = DEVICES_PER_NODE, in_subprocess: bool = False
    ) -> Run:
        pytester.makeconftest(_CONFTEST.format(fault=fault, devices=devices))
        pytester.makepyfile(test_suite=_SUITE.format(tests=tests))
        folder = pytester.path / "out"
        start = pytester.runpytest_subprocess if in_subprocess else pytester.runpytest_inprocess
        options = ["--testbed", "fake", "--report", str(folder), "--patience", "0.001", "--no-check"]
        return Run(start(*plugin_options(), *options, *arguments), folder)

    return run
