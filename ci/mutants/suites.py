"""Run the tests of some requirements on a testbed that is up, in a process of its own. For the runs on mutants and of shapes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from testbed.conformance import events
from testbed.conformance.catalogue import Entry
from testbed.errors import TestbedError
from testbed.models.report import DriverConformanceReport
from testbed.models.run_request import RunRequest
from testbed.reporting import report
from testbed.runs import pytest_process

# pytest with --maxfail repeats no failed test: on a mutant, failures are expected.
_NO_REPETITIONS = "--maxfail=1000000"


def run(request: RunRequest, entries: Sequence[Entry], *, repeats: bool = False) -> DriverConformanceReport:
    """Run the tests and return the report. The output of pytest is in the report folder."""
    shutil.rmtree(request.report, ignore_errors=True)  # of an earlier attempt
    request.report.mkdir(parents=True)
    chosen = request.model_copy(update={"tests": tuple(entry.test for entry in entries)})
    with (request.report / "pytest.log").open("w") as log:
        words = [*pytest_process.argv(chosen), *([] if repeats else [_NO_REPETITIONS])]
        subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not (request.report / events.FILE).exists():
        raise TestbedError(f"pytest started no test; see {request.report / 'pytest.log'}")
    return report.build(events.read(request.report))
