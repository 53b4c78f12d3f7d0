"""How a report begins: incomplete, from the moment in which a run knows what it will judge, so that no earlier report outlives a kill.

`dra-testbed run` opens it before there is a testbed; its suites, when they begin, begin the log anew with what they find.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed import __version__, folders
from testbed.conformance import catalogue, events
from testbed.conformance.events import EventLog
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import load_driver_file
from testbed.providers import provider
from testbed.reporting import report


def first_event(driver: Path, environment: Mapping[str, object], profile: str, patience: float) -> dict[str, object]:
    """Who is judged, where, and by what."""
    driver_file = load_driver_file(driver)
    digest = hashlib.sha256(driver.read_bytes()).hexdigest()
    return {
        "generated": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "suite": __version__,
            "catalogue": catalogue.read([folders.data("suites")]).digest,
            "python": platform.python_version(),
            "pytest": pytest.__version__,
        },
        "subject": {"driver": driver_file.driver, "driver_file": driver_file.name, "digest": f"sha256:{digest}"},
        "environment": {**environment, "hardware": driver_file.hardware},
        "profile": profile,
        "patience": patience,
    }


def environment_of(config: TestbedConfig) -> dict[str, object]:
    """Where it will be judged, as far as that is known before anybody has looked."""
    kubernetes, nodes = provider(config.provider).dispatch(
        maker=lambda _: (config.kubernetes, config.nodes), finder=lambda _: ("", 0)
    )
    return {
        "testbed": config.name,
        "provider": config.provider,
        "kubernetes": kubernetes,
        "nodes": nodes,
        "runtime": "",
        "feature_gates": dict(config.feature_gates),
    }


class Opening:
    """The report until the suites begin, in a folder that was reserved. Of a request that is refused it says nothing, and touches none."""

    def __init__(self, folder: Path, first: Mapping[str, object]) -> None:
        self._log, self._first, self._begun = EventLog(folder), first, False

    def begin(self) -> None:
        """The request is right: what an earlier run left goes, and whatever comes now, there is a report."""
        if not self._begun:
            with self._kept():
                self._log.begin()
            self._write("run-started", **self._first)
            self._begun = True
            self._write(events.WANTED)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While the testbed is made or found: what goes wrong is in the report."""
        try:
            yield
        except BaseException as failure:  # also a Ctrl-C or a SIGTERM; it goes on its way in any case
            if self._begun or not isinstance(failure, UsageError):
                with contextlib.suppress(TestbedError):  # a full disk must not hide what went wrong first
                    self.begin()
                    self._write(events.FAILED, why=_in_a_line(failure), evidence=self._evidence())
            raise

    def keep_logs(self, logs: Path, error: str) -> Path:
        """Keep the logs of a testbed that did not come up; returns where."""
        return events.keep_bring_up(self._log.folder, logs, error)

    def _write(self, event: str, **facts: object) -> None:
        with self._kept():
            self._log.write(event, **facts)
            report.write(self._log.folder)

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except OSError as refused:
            raise events.not_written(self._log.folder, refused) from refused

    def _evidence(self) -> str:
        kept = events.bring_up_evidence(self._log.folder)
        return str(kept.relative_to(self._log.folder)) if kept.is_dir() else ""


def _in_a_line(failure: BaseException) -> str:
    if isinstance(failure, TestbedError):
        return failure.what.splitlines()[0]
    if isinstance(failure, Exception):
        return f"{type(failure).__name__}: {failure}".splitlines()[0]
    return "interrupted"
