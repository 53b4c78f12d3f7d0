"""The caller of prepare: whether it still waits for an answer, and for how long. The DRA service makes one for each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ClaimRefused


@dataclass(frozen=True)
class Caller:
    """The caller of prepare for one claim. `timeout` returns how many seconds a request to the API server may take from now on."""

    is_waiting: Callable[[], bool] = lambda: True
    timeout: Callable[[], float] = lambda: REQUEST_TIMEOUT

    def check(self, claim: object) -> None:
        """Raise ClaimRefused if the caller no longer waits.

        It does not come back for what is prepared now, and its Unprepare may have been answered already.
        """
        if not self.is_waiting():
            raise ClaimRefused(f"the call for claim {claim} was cancelled or timed out, so the claim was not prepared")


PATIENT = Caller()
