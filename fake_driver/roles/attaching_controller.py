"""Attaches devices: the scheduler chose one with binding conditions for a pod, and waits with the pod until somebody says it is there.

The process for what belongs to no node does it, for all pools of the driver. It watches claims, takes as long as the hardware file says,
and writes one of the device's conditions into the claim's status: attached, or failed, whereupon the scheduler allocates anew. Devices
of which the hardware file does not say `attaching` are left to others.
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
Find = Callable[[str, str], Device]


class AttachmentQueue:
    """Which attachments are under way, and when each is over. Thread-safe."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._due: dict[Attachment, float] = {}
        self._over: set[Attachment] = set()
        self._stopped = False

    def update(self, uid: str, wanted: Iterable[Attachment], seconds: Callable[[Attachment], float]) -> None:
        """What a claim waits for by now. What it no longer waits for is not attached any more."""
        there = set(wanted)
        with self._news:
            for gone in [one for one in self._due if one.uid == uid and one not in there]:
                del self._due[gone]
            # What it waited for and is told by now is done; should somebody wipe it, the claim waits for it once more.
            self._over = {one for one in self._over if one.uid != uid or one in there}
            for one in there - self._due.keys() - self._over:
                self._due[one] = time.monotonic() + seconds(one)
            self._news.notify()

    def claim_uids(self) -> set[str]:
        """The claims that were seen to wait for something, and not yet seen to wait no more."""
        with self._news:
            return {one.uid for one in self._due} | {one.uid for one in self._over}

    def next(self) -> Attachment | None:
        """The next whose time is over; waits for it. None at the end. Until the claim says otherwise it does not come again."""
        with self._news:
            while not self._stopped:
                soonest = min(self._due, key=self._due.__getitem__, default=None)
                wait = self._due[soonest] - time.monotonic() if soonest else None
                if soonest and wait is not None and wait <= 0:
                    del self._due[soonest]
                    self._over.add(soonest)
                    return soonest
                self._news.wait(wait)
        return None

    def retry(self, one: Attachment, wait: float) -> None:
        """It could not be told; try later, unless nobody waits for it by now."""
        with self._news:
            if one in self._over:
                self._over.remove(one)
                self._due[one] = time.monotonic() + wait

    def stop(self) -> None:
        """Nothing comes next."""
        with self._news:
            self._stopped = True
            self._news.notify_all()


class AttachController:
    """Follows the claims in one thread, and tells what became of devices in another."""

    def __init__(self, api: ApiClient, driver: str, find: Find, journal: Journal) -> None:
        self._api, self._driver, self._find, self._journal = api, driver, find, journal
        self._claims, self._queue = ClaimClient(api), AttachmentQueue()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._stopped = threading.Event()
        self._errors, self._refusals = Backoff(0.2, 5), Backoff(0.2, 10)
        self._threads = [
            threading.Thread(target=work, name=f"attacher-{name}", daemon=True)
            for name, work in (("watch", self._follow), ("work", self._work))
        ]

    @property
    def is_alive(self) -> bool:
        """Whether the threads still do their work."""
        return all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Begin, in threads of its own."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; who waits will be seen after the next start. Close the API first."""
        self._stopped.set()
        self._queue.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(1)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                for uid, wanted in self._changes():
                    self._queue.update(uid, filter(self._attaching, wanted), self._seconds)
            except ApiError as trouble:
                if not self._stopped.wait(self._errors.next_delay()):
                    log.warning("the claims could not be followed: %s", trouble)
            except Exception:  # without this thread no pod with such a device would ever start
                log.exception("the attacher stumbled over an error of its own")
                self._stopped.wait(self._errors.next_delay())

    def _changes(self) -> Iterator[tuple[str, Sequence[Attachment]]]:
        """By claim, what it waits for: of all claims there are, and from then on of each that changes."""
        claims = url_path("apis", GROUP, newest_version(self._api), "resourceclaims")
        listed = self._api.get(claims, timeout=LIST_TIMEOUT)
        items = listed.get("items") or []
        for uid in self._queue.claim_uids() - {item["metadata"]["uid"] for item in items}:
            yield uid, ()
        for item in items:
            yield item["metadata"]["uid"], pending_attachments(item, self._driver)
        for kind, item in watch_events(self._api, claims, {}, str(listed["metadata"]["resourceVersion"])):
            yield item["metadata"]["uid"], () if kind == "DELETED" else pending_attachments(item, self._driver)

    def _work(self) -> None:
        while one := self._queue.next():
            try:
                self._tell(one)
            except ApiError as trouble:
                if not self._stopped.is_set():
                    log.warning(
                        "what became of a device of claim %s/%s is not told: %s", one.namespace, one.name, trouble
                    )
                self._queue.retry(one, self._refusals.next_delay())
            except Exception:  # one claim that cannot be told must not end the thread for the others
                log.exception("a device of claim %s/%s", one.namespace, one.name)
                self._queue.retry(one, self._refusals.next_delay())

    def _tell(self, one: Attachment) -> None:
        told = self._attaching(one)
        failed = bool(told and one.failure_conditions and self._failed[one.device] < told.failures)
        entry = status_entry(one, failed=failed, now=datetime.now(UTC))
        self._claims.apply(one.namespace, one.name, one.uid, [entry], field_manager(self._driver, one))
        self._failed[one.device] += failed
        pool, device = one.device
        self._journal.record(
            "attach", claim=one.name, namespace=one.namespace, uid=one.uid, pool=pool, device=device, failed=failed
        )

    def _seconds(self, one: Attachment) -> float:
        told = self._attaching(one)
        return told.seconds if told else 0

    def _attaching(self, one: Attachment) -> AttachBehavior | None:
        """What the hardware file says of it; None for a device that others attach, or that is not in the file any more."""
        with contextlib.suppress(ClaimRefused):
            binding = self._find(*one.device).binding
            return binding.attaching if binding else None
        return None
