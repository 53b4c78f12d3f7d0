"""What a second Ctrl-C does while pytest cleans up after the first one. Lives in the controller; workers end with it."""

from __future__ import annotations

import contextlib
import signal
from typing import Any

import pytest

from testbed.conformance import report_folder
from testbed.interrupts import deferred_interrupts


class SecondInterrupt:
    """pytest itself would break off in the middle of its last hooks, with a long traceback and without a report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """From now on until pytest has ended, signals mean something else. `pytest.exit` comes here as well, and is no signal."""
        if not isinstance(excinfo.value, KeyboardInterrupt):
            return
        if report_folder.reserved_by_parent():  # `dra-testbed run` answers, and says with SIGTERM when it shall end
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
