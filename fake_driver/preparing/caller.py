"""Who waits for an answer, and how long still. The servicers make one of each call; the driver asks before it promises anything.

A caller that went away will not come back for what is prepared for it: its Unprepare, if there was one, may have been answered already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fake_driver.api.client import REQUEST_TIMEOUT
from fake_driver.errors import ClaimRefused


@dataclass(frozen=True)
class Caller:
    """Somebody who asks for one claim. `patience` is how long to wait for the API server, as seen now."""

    waits: Callable[[], bool] = lambda: True
    patience: Callable[[], float] = lambda: REQUEST_TIMEOUT

    def check(self, claim: object) -> None:
        """Refuse the claim when nobody waits for it any more."""
        if not self.waits():
            raise ClaimRefused(f"nobody waits for claim {claim} any more, so it was not prepared")


PATIENT = Caller()
