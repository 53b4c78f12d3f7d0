"""Writes the status of prepared devices into their claims, behind the back of prepare: a slow API server costs no pod its start.

At least once: what does not succeed is tried again, with longer and longer pauses, for as long as the claim is prepared; and after a
restart all that is prepared is looked at again. Each node has a field manager of its own, so drivers and nodes write side by side.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fake_driver.api.claim_client import ClaimClient
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.journal import Journal
from fake_driver.preparing import device_status
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, Object, PreparedClaim, read_allocation

log = logging.getLogger(__name__)
_FIRST, _LONGEST, _LONGEST_REFUSED = 0.2, 60.0, 600.0  # seconds between attempts
_MOST_DOUBLINGS = 20
# The kubelet waits for the answers of prepare and nobody for a status: it is written when no claim came for so long, or has waited longest.
_QUIET, _LONGEST_BUSY = 0.1, 2.0
_REFUSALS = frozenset({401, 403, 422})  # somebody has to change rights first
_LONGEST_MANAGER = 128


def manager(driver: str, node: str) -> str:
    """The field manager of a driver on a node."""
    name = f"{driver}-{node}"
    return name if len(name) <= _LONGEST_MANAGER else f"{driver}-{hashlib.sha256(node.encode()).hexdigest()}"


@dataclass(eq=False)
class _Job:
    """A claim whose status is to be written. Only the newest job of a claim counts."""

    claim: PreparedClaim
    served: Object | None
    attempts: int = 0
    longest: float = _LONGEST


class StatusReporter:
    """The status of one driver's devices on one node. `known` says what is known of a device."""

    def __init__(
        self,
        claims: ClaimClient,
        driver: str,
        node: str,
        known: Callable[[AllocatedDevice], dict[str, Any]],
        journal: Journal,
    ) -> None:
        self._claims, self._driver, self._known, self._journal = claims, driver, known, journal
        self._manager = manager(driver, node)
        self._news = threading.Condition()
        self._jobs: dict[str, _Job] = {}
        self._due: list[tuple[float, int, _Job]] = []
        self._count = itertools.count()
        self._quiet = 0.0  # when it is
        self._stopped = False
        self._told_dropped = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """Have a claim's status written soon. A claim that was rebuilt without its name cannot be found in the API."""
        if claim.devices and claim.ref.name:
            with self._news:
                self._jobs[claim.ref.uid] = job = _Job(claim, served)
                self._quiet = time.monotonic() + _QUIET
                self._put(job, 0)

    def released(self, uid: str) -> None:
        """Forget what was still to be written."""
        with self._news:
            self._jobs.pop(uid, None)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End; what is not written yet will be after the next start. Close the API first."""
        with self._news:
            self._stopped = True
            self._news.notify()
        if self._thread.is_alive():
            self._thread.join(1)

    def _put(self, job: _Job, wait: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + wait, next(self._count), job))
        self._news.notify()

    def _run(self) -> None:
        while job := self._next():
            if self._is_done(job):
                self._close(job)
            else:
                self._again(job)

    def _next(self) -> _Job | None:
        """The next job whose time has come; None at the end."""
        with self._news:
            while not self._stopped:
                wait = self._begin(self._due[0][0]) - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    job = heapq.heappop(self._due)[2]
                    if self._jobs.get(job.claim.ref.uid) is job:
                        return job
                    continue
                self._news.wait(wait)
        return None

    def _begin(self, due: float) -> float:
        """When to begin what is due."""
        return max(due, min(self._quiet, due + _LONGEST_BUSY))

    def _is_done(self, job: _Job) -> bool:
        """One attempt; False when there has to be another."""
        ref = job.claim.ref
        try:
            self._write(job)
        except ClaimRefused as over:
            log.info("the status of claim %s is not written: %s", ref, over)
        except ApiError as trouble:
            if trouble.status == 404:
                return True  # the claim is gone
            level = logging.INFO if job.attempts or self._stopped else logging.WARNING
            log.log(level, "the status of claim %s cannot be written for now: %s", ref, trouble)
            job.longest = _LONGEST_REFUSED if trouble.status in _REFUSALS else _LONGEST
            return False
        except Exception:  # without this thread no claim would ever get a status again
            log.exception("the status of claim %s", ref)
            return False
        return True

    def _close(self, job: _Job) -> None:
        with self._news:
            if self._jobs.get(job.claim.ref.uid) is job:
                del self._jobs[job.claim.ref.uid]

    def _again(self, job: _Job) -> None:
        wait = min(_FIRST * 2**job.attempts, job.longest) * random.uniform(0.8, 1.0)  # noqa: S311 - it spreads load, it protects nothing
        job.attempts = min(job.attempts + 1, _MOST_DOUBLINGS)
        with self._news:
            self._put(job, wait)

    def _write(self, job: _Job) -> None:
        claim, ref = job.claim, job.claim.ref
        served = job.served or self._claims.get(ref.namespace, ref.name)
        job.served = None  # it may be old at the next attempt
        if not _same(read_allocation(served, ref, self._driver), claim):
            raise ClaimRefused(f"claim {ref} has other devices by now")
        wanted = device_status.entries(claim, self._driver, served, self._known, datetime.now(UTC))
        if not device_status.missing(wanted, served):
            return
        stored = self._claims.apply(ref.namespace, ref.name, ref.uid, wanted, self._manager)
        self._journal.record(
            "status-write", claim=ref.name, namespace=ref.namespace, uid=ref.uid, devices=[e["device"] for e in wanted]
        )
        self._tell_dropped(device_status.missing(wanted, stored), ref)

    def _tell_dropped(self, lost: list[str], ref: ClaimRef) -> None:
        if lost and not self._told_dropped:
            self._told_dropped = True
            self._journal.record("status-fields-dropped", claim=ref.name, namespace=ref.namespace, fields=lost[:20])
            log.warning("the API server dropped the status of devices; is a feature gate off? %s", ", ".join(lost[:20]))


def _same(one: PreparedClaim, other: PreparedClaim) -> bool:
    first, second = (
        {(use.request, use.pool, use.device, use.share_id) for use in claim.devices} for claim in (one, other)
    )
    return first == second
