"""The status reporter: it writes the device status of prepared claims in the background, so that prepare never waits for it.

A write that fails is retried with exponential back-off for as long as the claim is prepared. After a restart, the status of all prepared
claims is checked again. Each node has its own field manager, so drivers and nodes do not overwrite each other's entries.
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
_FIRST_DELAY, _LONGEST_DELAY, _LONGEST_DELAY_IF_DENIED = 0.2, 60.0, 600.0  # seconds between attempts
_MOST_DOUBLINGS = 20
# The kubelet waits for prepare, but not for the status. So a status is written after this many seconds without a new claim,
# or when it has waited for the longer time.
_QUIET, _LONGEST_WAIT_FOR_QUIET = 0.1, 2.0
_DENIED = frozenset({401, 403, 422})  # until an administrator changes permissions
_LONGEST_MANAGER = 128


def field_manager(driver: str, node: str) -> str:
    """Return the field manager of a driver on a node."""
    name = f"{driver}-{node}"
    return name if len(name) <= _LONGEST_MANAGER else f"{driver}-{hashlib.sha256(node.encode()).hexdigest()}"


@dataclass(eq=False)
class _Job:
    """A claim whose status must be written. A newer job for the same claim replaces it."""

    claim: PreparedClaim
    served: Object | None
    attempts: int = 0
    longest_delay: float = _LONGEST_DELAY


class StatusReporter:
    """The reporter of device status for one driver on one node. `status_data` returns the data of an allocated device."""

    def __init__(
        self,
        claims: ClaimClient,
        driver: str,
        node: str,
        status_data: Callable[[AllocatedDevice], dict[str, Any]],
        journal: Journal,
    ) -> None:
        self._claims, self._driver, self._status_data, self._journal = claims, driver, status_data, journal
        self._manager = field_manager(driver, node)
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job] = {}  # the newest job of each claim, by UID
        self._queue: list[tuple[float, int, _Job]] = []  # with the time when each is due
        self._count = itertools.count()
        self._quiet_at = 0.0
        self._stopped = False
        self._has_warned_of_dropped_fields = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        """Schedule the status of a claim. A claim that was rebuilt without its name is skipped: it cannot be found in the API."""
        if claim.devices and claim.ref.name:
            with self._changed:
                self._jobs[claim.ref.uid] = job = _Job(claim, served)
                self._quiet_at = time.monotonic() + _QUIET
                self._schedule(job, 0)

    def released(self, uid: str) -> None:
        """Drop the claim's scheduled status."""
        with self._changed:
            self._jobs.pop(uid, None)

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. What is not written is written after the next start. Close the API client first."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(1)

    def _schedule(self, job: _Job, delay: float) -> None:
        heapq.heappush(self._queue, (time.monotonic() + delay, next(self._count), job))
        self._changed.notify()

    def _run(self) -> None:
        while job := self._next():
            if self._attempt(job):
                self._finish(job)
            else:
                self._retry_later(job)

    def _next(self) -> _Job | None:
        """Wait for the next job that is due. Return None when the reporter is stopped."""
        with self._changed:
            while not self._stopped:
                wait = self._start_time(self._queue[0][0]) - time.monotonic() if self._queue else None
                if wait is not None and wait <= 0:
                    job = heapq.heappop(self._queue)[2]
                    if self._jobs.get(job.claim.ref.uid) is job:
                        return job
                    continue
                self._changed.wait(wait)
        return None

    def _start_time(self, due: float) -> float:
        """Return when to start a job that is due then."""
        return max(due, min(self._quiet_at, due + _LONGEST_WAIT_FOR_QUIET))

    def _attempt(self, job: _Job) -> bool:
        """Write the status. Return False if it must be retried."""
        ref = job.claim.ref
        try:
            self._write(job)
        except ClaimRefused as refused:
            log.info("the device status of claim %s is not written: %s", ref, refused)
        except ApiError as error:
            if error.status == 404:
                return True  # the claim was deleted
            level = logging.INFO if job.attempts or self._stopped else logging.WARNING
            log.log(level, "the device status of claim %s cannot be written, will retry: %s", ref, error)
            job.longest_delay = _LONGEST_DELAY_IF_DENIED if error.status in _DENIED else _LONGEST_DELAY
            return False
        except Exception:  # if this thread ended, no claim would get a status again
            log.exception("the device status of claim %s cannot be written, will retry", ref)
            return False
        return True

    def _finish(self, job: _Job) -> None:
        with self._changed:
            if self._jobs.get(job.claim.ref.uid) is job:
                del self._jobs[job.claim.ref.uid]

    def _retry_later(self, job: _Job) -> None:
        delay = min(_FIRST_DELAY * 2**job.attempts, job.longest_delay) * random.uniform(0.8, 1.0)  # noqa: S311 - jitter
        job.attempts = min(job.attempts + 1, _MOST_DOUBLINGS)
        with self._changed:
            self._schedule(job, delay)

    def _write(self, job: _Job) -> None:
        claim, ref = job.claim, job.claim.ref
        served = job.served or self._claims.get(ref.namespace, ref.name)
        job.served = None  # a retry must read the claim again
        if not _has_same_devices(read_allocation(served, ref, self._driver), claim):
            raise ClaimRefused(f"claim {ref} has other devices by now")
        wanted = device_status.entries(claim, self._driver, served, self._status_data, datetime.now(UTC))
        if not device_status.missing(wanted, served):
            return
        stored = self._claims.apply(ref.namespace, ref.name, ref.uid, wanted, self._manager)
        self._journal.record(
            "status-write", claim=ref.name, namespace=ref.namespace, uid=ref.uid, devices=[e["device"] for e in wanted]
        )
        self._warn_of_dropped_fields(device_status.missing(wanted, stored), ref)

    def _warn_of_dropped_fields(self, dropped: list[str], ref: ClaimRef) -> None:
        if dropped and not self._has_warned_of_dropped_fields:
            self._has_warned_of_dropped_fields = True
            self._journal.record("status-fields-dropped", claim=ref.name, namespace=ref.namespace, fields=dropped[:20])
            log.warning(
                "the API server dropped fields of the device status, probably because a feature gate is off: %s",
                ", ".join(dropped[:20]),
            )


def _has_same_devices(one: PreparedClaim, other: PreparedClaim) -> bool:
    first, second = (
        {(device.request, device.pool, device.device, device.share_id) for device in claim.devices}
        for claim in (one, other)
    )
    return first == second
