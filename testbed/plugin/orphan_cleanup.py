"""Clears up after tests that were killed, or interrupted before they could do it themselves, in workers of xdist or here.

Lives in the controller. What it cannot delete, the next session on the testbed does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.bringup import Testbed, sessions
from testbed.errors import TestbedError
from testbed.vocabulary.orphaned_objects import delete_orphans


class OrphanCleanup:
    """The hooks of the controller. `run` is how the words of this run's processes begin."""

    def __init__(self, testbed: Callable[[], Testbed], run: str) -> None:
        self._testbed, self._run = testbed, run
        self._said: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker has died: the others may want its devices."""
        if error:
            gone = f"{self._run}-{node.gateway.id}"  # gw1 is not gw10
            self._clear(lambda process: process == gone)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """No worker is left, and no test."""
        if self._clear(lambda process: process.startswith(f"{self._run}-")):
            sessions.discard_lock(self._testbed().folder, self._run)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it at the end, where it is read."""
        for line in self._said:
            terminalreporter.write_line(line)

    def _clear(self, is_gone: Callable[[str], bool]) -> bool:
        try:
            testbed = self._testbed()
            deleted = delete_orphans(testbed.kube, testbed.owner, is_gone)
        except TestbedError as refused:
            self._said.append(f"what tests have left could not be deleted: {refused}")
            return False
        if deleted:
            self._said.append(f"deleted what killed tests have left: {', '.join(deleted)}")
        return True
