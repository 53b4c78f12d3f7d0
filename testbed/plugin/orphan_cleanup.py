"""Hooks of the controller that delete what killed or interrupted tests left. What remains, the next session deletes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.bringup import Testbed, sessions
from testbed.errors import TestbedError
from testbed.vocabulary.orphaned_objects import delete_orphans


class OrphanCleanup:
    """Deletes the orphaned objects of this session: those that are labelled with one of its processes."""

    def __init__(self, testbed: Callable[[], Testbed], session: str) -> None:
        self._testbed, self._session = testbed, session
        self._messages: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Clean up after a worker that crashed, because other workers may need its devices."""
        if error:
            process_name = f"{self._session}-{node.gateway.id}"  # gw1 is not gw10
            self._delete_orphans(lambda process: process == process_name)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Clean up when all workers have ended."""
        if self._delete_orphans(lambda process: process.startswith(f"{self._session}-")):
            sessions.discard_lock(self._testbed().folder, self._session)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what was deleted."""
        for line in self._messages:
            terminalreporter.write_line(line)

    def _delete_orphans(self, is_gone: Callable[[str], bool]) -> bool:
        try:
            testbed = self._testbed()
            deleted = delete_orphans(testbed.kube, testbed.owner, is_gone)
        except TestbedError as refused:
            self._messages.append(f"objects that tests left could not be deleted: {refused}")
            return False
        if deleted:
            self._messages.append(f"deleted objects of killed tests: {', '.join(deleted)}")
        return True
