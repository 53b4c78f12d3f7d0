"""Which tests run at the same time. The controller names them in the evidence of a failure that may be theirs."""

from __future__ import annotations


class RunningTests:
    """The tests that run now, each with those that ran beside it."""

    def __init__(self) -> None:
        self._beside: dict[str, set[str]] = {}

    def start(self, test: str) -> None:
        """Note that a test begins."""
        running = {*self._beside} - {test}
        for each in running:
            self._beside[each].add(test)
        self._beside[test] = running

    def end(self, test: str) -> list[str]:
        """Note that a test ended. Return the tests that ran beside it, sorted."""
        return sorted(self._beside.pop(test, set()))
