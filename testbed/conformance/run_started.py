"""The first event of a run: which driver is judged, where, and by which request. Used by `testbed.runs` and the plugin."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed import __version__, folders
from testbed.conformance import catalogue, versions
from testbed.models.driver_file import load_driver_file
from testbed.models.report import Environment
from testbed.models.run_request import ReportedRequest, RunRequest


def run_started(
    request: RunRequest, driver: Path, environment: Environment, images: versions.Images | None = None
) -> dict[str, object]:
    """Return the content of the event. `driver` is the path of the driver file; `images` are those of each driver, with their IDs."""
    driver_file = load_driver_file(driver)
    return {
        "generated": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "suite": __version__,
            "digest": versions.harness_digest(),
            "catalogue": catalogue.read([folders.data("suites")]).digest,
            "python": platform.python_version(),
            "pytest": pytest.__version__,
        },
        "subject": versions.describe(driver, images or {}),
        "companions": [versions.describe(each, images or {}) for each in driver_file.companions],
        "environment": {**environment.model_dump(mode="json"), "hardware": driver_file.hardware},
        "profile": request.profile,
        "patience": request.patience,
        "known": [each.model_dump(mode="json", exclude_none=True) for each in driver_file.known],
        "request": request.model_dump(mode="json", include=set(ReportedRequest.model_fields)),
    }
