"""Keeps the ResourceSlices in the API server equal to the wanted ones, for as long as the driver lives.

It watches, because others write too: every kubelet that starts deletes all slices of its node, and only the driver brings them back.
The first repair is made at once; when repairs follow on each other (two versions of the driver that disagree), they get slower.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

from fake_driver.api.backoff import Backoff
from fake_driver.api.client import ApiClient
from fake_driver.errors import ApiError
from fake_driver.journal import Journal
from fake_driver.publishing.counter_placement import with_counters_beside_devices
from fake_driver.publishing.disabled_features import (
    consumes_counters,
    only_lacks_fields,
    without_list_attributes,
    without_overlapping_devices,
)
from fake_driver.publishing.dropped_fields import DroppedFields
from fake_driver.publishing.planner import (
    Plan,
    Planner,
    as_update_of,
    comparable,
    generation_of,
    plan,
    state_key,
    with_generation,
)
from fake_driver.publishing.slice_watch import SliceCache, SliceEvent, SliceList, SliceWatch
from fake_driver.publishing.slices import Object, Owner
from fake_driver.publishing.validation import find_problems

log = logging.getLogger(__name__)
_MOST_TOLD = 20
_DRY_RUN = {"dryRun": "All"}


class _Call(Enum):
    """What our own process has to say."""

    REFRESH = "what is wanted has changed"
    STOP = "stop"


class Publisher:
    """The slices of one driver on one node, or those of the network where `node` is ''."""

    def __init__(
        self,
        api: ApiClient,
        driver: str,
        node: str,
        slices: Callable[[Owner], Sequence[Object]],
        journal: Journal,
        planner: Planner = plan,
    ) -> None:
        self.published = threading.Event()
        self._api, self._slices, self._journal, self._planner = api, slices, journal, planner
        self._news: queue.SimpleQueue[SliceList | SliceEvent | _Call] = queue.SimpleQueue()
        self._cache, self._dropped = SliceCache(), DroppedFields(journal)
        self._watch = SliceWatch(api, driver, node, self._news.put, lambda: self._cache.writes)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._errors, self._repairs = Backoff(0.2, 5), Backoff(0.1, 10)
        self._listed: SliceList | None = None
        self._is_owner_sure = True
        self._target: list[Object] | None = None
        self._whole: dict[str, Object] = {}  # what we would ask for if lists were kept
        self._lists, self._counters = True, True
        self._knows_counters = False
        self._accepted: dict[str, Object] = {}
        self._asked = True
        self._refused = ""

    @property
    def slice_count(self) -> int:
        """How many slices there are, as far as we know."""
        return len(self._cache.slices)

    @property
    def slice_names(self) -> frozenset[str]:
        """The names of the slices that there are, as far as we know; for what says which slices are wanted."""
        return frozenset(self._cache.slices)

    @property
    def is_alive(self) -> bool:
        """Whether the threads still do their work."""
        return self._thread.is_alive() and self._watch.is_alive

    def start(self) -> None:
        """Begin, in threads of its own."""
        self._thread.start()
        self._watch.start()

    def refresh(self) -> None:
        """What is wanted has changed; write it soon. Returns at once."""
        self._news.put(_Call.REFRESH)

    def stop(self) -> None:
        """End. The slices stay: after a restart they are right, and after an uninstall the kubelet removes them. Close the API first."""
        self._stopped.set()
        self._news.put(_Call.STOP)
        self._watch.stop()
        if self._thread.is_alive():
            self._thread.join(1)

    def _run(self) -> None:
        pause: float | None = None
        while not self._stopped.is_set():
            try:
                self._hear(pause)
                self._work()
                pause = None
            except ApiError as trouble:
                self._complain(trouble)
                pause = self._errors.next_delay()
            except Exception:  # without this thread the node would lose its devices for good
                log.exception("the publisher stumbled over an error of its own")
                pause = self._errors.next_delay()

    def _hear(self, patience: float | None) -> None:
        """All news there are; waits so long for the first. Nothing to wait for means: as long as it takes."""
        with contextlib.suppress(queue.Empty):
            self._take(self._news.get(timeout=patience))
            while True:
                self._take(self._news.get_nowait())

    def _take(self, news: SliceList | SliceEvent | _Call) -> None:
        if isinstance(news, SliceList):
            # The server may be another than before, with other features: what it keeps is found out again.
            self._listed, self._target, self._asked = news, None, True
            self._lists, self._counters, self._knows_counters = True, True, False
            self._accepted.clear()
            self._cache.replace_all(news.items, news.version, news.writes_before)
            self._is_owner_sure = True
        elif isinstance(news, SliceEvent):
            if self._cache.apply_event(news):
                self._is_owner_sure = False
                self._journal.record("slice-gone", slice=news.item["metadata"]["name"])
        elif news is _Call.REFRESH:
            self._asked, self._target = True, None

    def _work(self) -> None:
        """Put the slices right where they are wrong."""
        if self._stopped.is_set() or not self._listed:
            return
        if self._plan(self._wanted()):
            if not self._asked:
                # Somebody else wrote. A wipe deletes slice after slice; a moment later one look sees them all.
                self._stopped.wait(self._repairs.next_delay())
                self._hear(0)
            self._write()
        self._asked = False
        self.published.set()

    def _write(self) -> None:
        """Make the writes. Where a slice is refused that has lists as attributes, their feature may be off: try without them."""
        self._be_sure_of_the_owner()
        try:
            self._put_right()
        except ApiError as refused:
            if refused.status != 422 or not self._lists or without_list_attributes(self._wanted()) == self._wanted():
                raise
            self._lists, self._target = False, None
            try:
                self._put_right()
            except ApiError:
                self._lists, self._target = True, None
                raise
            for name, asked in self._whole.items():
                self._dropped.compare_fields(asked, self._cache.slices[name])

    def _be_sure_of_the_owner(self) -> None:
        """Slices may be gone because their owner is. One of the same name has another UID, and what names the old UID is deleted again."""
        if self._is_owner_sure:
            return
        server = self._of_server()
        owner = self._watch.owner(server.served)
        if owner != server.owner:
            self._listed, self._target = replace(server, owner=owner), None
        self._is_owner_sure = True

    def _wanted(self) -> list[Object]:
        """The slices as this server wants them, made anew when the hardware or the server may have changed."""
        if self._target is None:
            server = self._of_server()
            wanted = self._slices(server.owner)
            wrong = find_problems(wanted)
            if wrong:
                raise ApiError("the wanted slices", 422, "; ".join(wrong[:_MOST_TOLD]))
            asked = list(wanted) if server.served.separate_counter_slices else with_counters_beside_devices(wanted)
            if self._knows_counters:
                less = asked if self._counters else without_overlapping_devices(asked)
                self._dropped.compare_devices(asked, less)
                asked = less
            self._target = asked if self._lists else without_list_attributes(asked)
            self._whole = {each["metadata"]["name"]: each for each in asked}
        return self._target

    def _plan(self, wanted: Sequence[Object]) -> Plan:
        return self._planner(wanted, self._cache.slices.values(), self._accepted)

    def _put_right(self) -> None:
        self._find_out_about_counters()
        wanted = self._wanted()
        for new in self._plan(wanted).replace:
            self._find_out(new)
        writes = self._plan(wanted)
        for old in writes.delete:
            self._api.delete(self._address(old), uid=old["metadata"]["uid"])
            self._cache.record_delete(old)
            self._journal.record("slice-write", verb="delete", slice=old["metadata"]["name"])
        for new in writes.replace:
            self._store("replace", new, self._api.replace(self._address(new), self._from_v1(new)))
        for new in writes.create:
            self._store("create", new, self._api.create(self._address(), self._from_v1(new)))

    def _find_out_about_counters(self) -> None:
        """Whether the API server keeps what devices draw from counters. A dry run tells, before a scheduler sees more than there is."""
        new = next(filter(consumes_counters, self._wanted()), None)
        if self._knows_counters or not new:
            return
        there = self._cache.slices.get(new["metadata"]["name"])
        if there:
            asked = self._from_v1(with_generation(as_update_of(there, new), generation_of(there)))
            answer = self._api.replace(self._address(new), asked, _DRY_RUN)
        else:
            answer = self._api.create(self._address(), self._from_v1(with_generation(new, 1)), _DRY_RUN)
        self._counters, self._knows_counters, self._target = consumes_counters(self._to_v1(answer)), True, None

    def _find_out(self, new: Object) -> None:
        """A slice of an earlier process may lack fields because the API server drops them: a dry run tells, and no write is lost on it."""
        there = self._cache.slices[new["metadata"]["name"]]
        if not only_lacks_fields(there, new):
            return
        asked = self._from_v1(with_generation(new, generation_of(there)))
        kept = self._to_v1(self._api.replace(self._address(new), asked, _DRY_RUN))
        if comparable(kept) == comparable(there):
            self._accept(new, there)

    def _store(self, verb: str, sent: Object, answer: Object) -> None:
        stored = self._to_v1(answer)
        self._cache.record_write(stored)
        self._journal.record(
            "slice-write",
            verb=verb,
            slice=sent["metadata"]["name"],
            devices=len(sent["spec"].get("devices", ())),
            generation=generation_of(stored),
        )
        self._accept(sent, stored)

    def _accept(self, sent: Object, stored: Object) -> None:
        """The API server keeps this when it is asked for that."""
        # Only the present state of each slice matters, so there is one entry for each.
        current = {state_key(slice_) for slice_ in self._cache.slices.values()}
        self._accepted = {state: asked for state, asked in self._accepted.items() if state in current}
        self._accepted[state_key(stored)] = comparable(sent)
        self._dropped.compare_fields(self._whole[sent["metadata"]["name"]], stored)

    def _complain(self, trouble: ApiError) -> None:
        if self._stopped.is_set():
            return
        log.warning("the slices cannot be written for now: %s", trouble)
        if trouble.status == 422 and trouble.message != self._refused:
            # To try again will not help; somebody has to know.
            self._refused = trouble.message
            self._journal.record("slices-refused", request=trouble.request, message=trouble.message)

    def _address(self, slice_: Object | None = None) -> str:
        words = [slice_["metadata"]["name"]] if slice_ else []
        return self._of_server().served.path("resourceslices", *words)

    def _from_v1(self, slice_: Object) -> Object:
        return self._of_server().served.from_v1(slice_)

    def _to_v1(self, slice_: Object) -> Object:
        return self._of_server().served.to_v1(slice_)

    def _of_server(self) -> SliceList:
        if not self._listed:
            raise RuntimeError("nothing can be written before the first list")
        return self._listed
