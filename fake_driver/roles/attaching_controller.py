"""A controller that simulates attaching devices with binding conditions, for which the scheduler waits before it binds a pod.

The network driver runs it for all pools of the driver. It watches claims, waits as long as the hardware file says, and sets a condition
of the device in the claim's status: attached, or failed, after which the scheduler allocates again. It ignores devices without
`attaching` in the hardware file.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from fake_driver.api.backoff import Backoff
from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import ApiClient, url_path
from fake_driver.api.served_versions import GROUP, newest_version
from fake_driver.api.watch import LIST_TIMEOUT, watch_events
from fake_driver.devices.model import AttachBehavior, Device
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.journal import Journal
from fake_driver.roles.attachments import Attachment, field_manager, pending_attachments, status_entry

log = logging.getLogger(__name__)
FindDevice = Callable[[str, str], Device]  # by pool and name


class AttachmentQueue:
    """The attachments in progress, ordered by the time when they are complete. Thread-safe."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: dict[Attachment, float] = {}
        self._returned: set[Attachment] = set()  # by `next`, and their claims still wait
        self._stopped = False

    def update(self, uid: str, wanted: Iterable[Attachment], seconds: Callable[[Attachment], float]) -> None:
        """Set the attachments that a claim waits for. Attachments that it no longer waits for are cancelled."""
        current = set(wanted)
        with self._condition:
            for gone in [each for each in self._due if each.uid == uid and each not in current]:
                del self._due[gone]
            # If the claim no longer waits for a returned attachment, it is done; it is queued again if its condition is removed.
            self._returned = {each for each in self._returned if each.uid != uid or each in current}
            for attachment in current - self._due.keys() - self._returned:
                self._due[attachment] = time.monotonic() + seconds(attachment)
            self._condition.notify()

    def claim_uids(self) -> set[str]:
        """Return the UIDs of the claims that wait for an attachment, as far as known."""
        with self._condition:
            return {each.uid for each in (*self._due, *self._returned)}

    def next(self) -> Attachment | None:
        """Wait for the next attachment that is complete and return it once; return None after `stop`."""
        with self._condition:
            while not self._stopped:
                soonest = min(self._due, key=self._due.__getitem__, default=None)
                wait = self._due[soonest] - time.monotonic() if soonest else None
                if soonest and wait is not None and wait <= 0:
                    del self._due[soonest]
                    self._returned.add(soonest)
                    return soonest
                self._condition.wait(wait)
        return None

    def retry(self, attachment: Attachment, delay: float) -> None:
        """Return the attachment again after a delay, unless its claim no longer waits for it."""
        with self._condition:
            if attachment in self._returned:
                self._returned.remove(attachment)
                self._due[attachment] = time.monotonic() + delay

    def stop(self) -> None:
        """End waiting calls of `next`."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()


class AttachController:
    """Watches claims in one thread and writes conditions in another."""

    def __init__(self, api: ApiClient, driver: str, find_device: FindDevice, journal: Journal) -> None:
        self._api, self._driver, self._find_device, self._journal = api, driver, find_device, journal
        self._claims, self._queue = ClaimClient(api), AttachmentQueue()
        self._failures: Counter[tuple[str, str]] = Counter()
        self._stopped = threading.Event()
        self._watch_errors, self._write_errors = Backoff(0.2, 5), Backoff(0.2, 10)
        self._threads = [
            threading.Thread(target=work, name=f"attacher-{name}", daemon=True)
            for name, work in (("watch", self._watch), ("write", self._write_all))
        ]

    @property
    def is_alive(self) -> bool:
        """Return True while both threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads. Close the API client first. Claims that wait now are found again after the next start."""
        self._stopped.set()
        self._queue.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(1)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            try:
                for uid, wanted in self._waiting_claims():
                    self._queue.update(uid, filter(self._attaching, wanted), self._seconds)
            except ApiError as error:
                if not self._stopped.wait(self._watch_errors.next_delay()):
                    log.warning("cannot watch the claims, trying again: %s", error)
            except Exception:  # without this thread, pods with devices to attach would never start
                log.exception("unexpected error in the attach controller, trying again")
                self._stopped.wait(self._watch_errors.next_delay())

    def _waiting_claims(self) -> Iterator[tuple[str, Sequence[Attachment]]]:
        """Yield the UID of each claim and the attachments that it waits for: first of all claims, then of each claim that changes."""
        claims = url_path("apis", GROUP, newest_version(self._api), "resourceclaims")
        listed = self._api.get(claims, timeout=LIST_TIMEOUT)
        items = listed.get("items") or []
        for uid in self._queue.claim_uids() - {item["metadata"]["uid"] for item in items}:
            yield uid, ()
        for item in items:
            yield item["metadata"]["uid"], pending_attachments(item, self._driver)
        for kind, item in watch_events(self._api, claims, {}, str(listed["metadata"]["resourceVersion"])):
            yield item["metadata"]["uid"], () if kind == "DELETED" else pending_attachments(item, self._driver)

    def _write_all(self) -> None:
        while attachment := self._queue.next():
            try:
                self._write(attachment)
            except ApiError as error:
                if not self._stopped.is_set():
                    log.warning(
                        "cannot write the condition of a device of claim %s/%s, trying again: %s",
                        attachment.namespace,
                        attachment.name,
                        error,
                    )
                self._queue.retry(attachment, self._write_errors.next_delay())
            except Exception:  # an error of one claim must not stop the thread, which serves all claims
                log.exception(
                    "unexpected error with a device of claim %s/%s, trying again", attachment.namespace, attachment.name
                )
                self._queue.retry(attachment, self._write_errors.next_delay())

    def _write(self, attachment: Attachment) -> None:
        attaching = self._attaching(attachment)
        failed = bool(
            attaching and attachment.failure_conditions and self._failures[attachment.device] < attaching.failures
        )
        entry = status_entry(attachment, failed=failed, now=datetime.now(UTC))
        self._claims.apply(
            attachment.namespace, attachment.name, attachment.uid, [entry], field_manager(self._driver, attachment)
        )
        self._failures[attachment.device] += failed
        pool, device = attachment.device
        self._journal.record(
            "attach",
            claim=attachment.name,
            namespace=attachment.namespace,
            uid=attachment.uid,
            pool=pool,
            device=device,
            failed=failed,
        )

    def _seconds(self, attachment: Attachment) -> float:
        attaching = self._attaching(attachment)
        return attaching.seconds if attaching else 0

    def _attaching(self, attachment: Attachment) -> AttachBehavior | None:
        """Return how the hardware file simulates attaching the device; None if it does not, or no longer has the device."""
        with contextlib.suppress(ClaimRefused):
            binding = self._find_device(*attachment.device).binding
            return binding.attaching if binding else None
        return None
