"""Reads the report of an earlier run for the option --failed. Used by the command `run` and the pytest plugin."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from testbed.conformance import versions
from testbed.errors import UsageError
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Verdict
from testbed.reporting.report import FILE

_TO_REPEAT = {None, Verdict.FAIL, Verdict.FLAKY, Verdict.ERROR, Verdict.TIMEOUT, Verdict.BLOCKED}
_HINT = "name a report folder"


def failed_in(report: Path) -> tuple[str, ...]:
    """Return the requirements that failed or have no answer in a report. UsageError if there is no report, or none of them."""
    found = tuple(row.id for row in _read(report).requirements if row.verdict in _TO_REPEAT)
    if not found:
        raise UsageError(f"--failed: nothing failed in {_file(report)}", hint="leave out --failed")
    return found


def compare_driver(report: Path, driver_file: Path) -> str:
    """Return a note if the driver file has changed since the report, '' if not. UsageError if the report is about another driver."""
    earlier, now = _read(report).subject, versions.describe(driver_file, {})
    if earlier.driver != now["driver"]:
        raise UsageError(
            f"--failed: {_file(report)} is about the driver {earlier.driver}, but {driver_file} is the driver file of {now['driver']}",
            hint="name a report about the same driver, or leave out --failed",
        )
    return "" if earlier.digest == now["digest"] else f"{driver_file} has changed since {_file(report)} was written"


def _file(report: Path) -> Path:
    return report / FILE if report.is_dir() else report


def _read(report: Path) -> DriverConformanceReport:
    file = _file(report)
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
        return DriverConformanceReport.model_validate_json(json.dumps(content))
    except FileNotFoundError as missing:
        raise UsageError(f"--failed: there is no such file: {file}", hint=_HINT) from missing
    except (OSError, ValueError, TypeError, yaml.YAMLError) as unreadable:
        raise UsageError(f"--failed: {file} is not a report of this version", hint=_HINT) from unreadable
