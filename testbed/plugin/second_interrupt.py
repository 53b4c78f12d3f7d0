"""A hook of the controller for a second Ctrl-C while pytest cleans up after the first one. Workers end with the controller."""

from __future__ import annotations

import contextlib
import signal
from typing import Any

import pytest

from testbed.conformance import report_folder
from testbed.interrupts import deferred_interrupts


class SecondInterrupt:
    """Defers signals during clean-up. Otherwise pytest would stop in one of its last hooks, with a traceback and without a report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Replace the signal handlers until pytest has ended. Ignore `pytest.exit`, which calls this hook too."""
        if not isinstance(excinfo.value, KeyboardInterrupt):
            return
        if report_folder.reserved_by_parent():  # `dra-testbed run` handles signals, and sends SIGTERM to end pytest
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return
        with contextlib.ExitStack() as held:
            held.enter_context(
                deferred_interrupts(
                    self._say, "interrupted: tests clean up first", "ended at once", asked=True, ends=True
                )
            )
            self._config.add_cleanup(held.pop_all().close)

    def _say(self, what: str) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        with contextlib.suppress(OSError):  # a terminal that was closed
            if reporter:
                reporter.write_line(f"\n{what}")
                reporter.flush()
