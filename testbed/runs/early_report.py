"""The report of a run until its suites begin: incomplete, so that no earlier report survives a run that is killed. Used by `execution`.

`dra-testbed run` begins it before there is a testbed. When the suites begin, the plugin begins the log again with what it found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.bringup.steps import procedure_of
from testbed.conformance import events, report_folder
from testbed.conformance.events import EventLog
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig
from testbed.models.report import Environment
from testbed.reporting import report


def expected_environment(name: str, config: TestbedConfig) -> Environment:
    """Return where the driver will be judged, as far as the configuration of the testbed says it."""
    expected = procedure_of(config.provider).expected_cluster(config)
    return Environment(
        testbed=name,
        provider=config.provider,
        kubernetes=expected.kubernetes,
        nodes=expected.nodes,
        runtime="",
        feature_gates=dict(config.feature_gates),
    )


class EarlyReport:
    """Writes into a report folder that was reserved. A request that is refused leaves no trace there."""

    def __init__(self, folder: Path, started: Mapping[str, object]) -> None:
        self._log, self._started, self._begun = EventLog(folder), started, False

    def begin(self) -> None:
        """Replace the report of an earlier run with an incomplete one. Call it as soon as the request is known to be valid."""
        if not self._begun:
            with self._explain_write_errors():
                report_folder.start_report(self._log.folder)
            self._write("run-started", **self._started)
            self._begun = True
            self._write(events.TESTBED_WANTED)

    @contextlib.contextmanager
    def recording_failure(self) -> Iterator[None]:
        """Record why there is no testbed, if what happens inside fails. A request that is refused is not recorded."""
        try:
            yield
        except BaseException as failure:  # also Ctrl-C and SIGTERM; it is raised again in any case
            if self._begun or not isinstance(failure, UsageError):
                with contextlib.suppress(TestbedError):  # a full disk must not hide the first failure
                    self.begin()
                    self._write(events.TESTBED_FAILED, why=_in_one_line(failure), evidence=self._evidence())
            raise

    def keep_logs(self, logs: Path, error: str) -> Path:
        """Copy the logs of a testbed that did not come up into the report folder and return where they are."""
        return report_folder.keep_bring_up_logs(self._log.folder, logs, error)

    def _write(self, event: str, **facts: object) -> None:
        with self._explain_write_errors():
            self._log.write(event, **facts)
            report.write(self._log.folder)

    @contextlib.contextmanager
    def _explain_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as refused:
            raise report_folder.write_error(self._log.folder, refused) from refused

    def _evidence(self) -> str:
        kept = report_folder.bring_up_logs(self._log.folder)
        return str(kept.relative_to(self._log.folder)) if kept.is_dir() else ""


def _in_one_line(failure: BaseException) -> str:
    if isinstance(failure, TestbedError):
        return failure.what.splitlines()[0]
    if isinstance(failure, Exception):
        return f"{type(failure).__name__}: {failure}".splitlines()[0]
    return "interrupted"
