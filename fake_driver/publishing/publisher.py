"""Keeps the ResourceSlices in the API server equal to the wanted ones, as a controller. The roles start it.

It watches because other clients write slices, too: every kubelet that starts deletes all slices of its node, and the driver must restore
them. Repairs that follow each other are delayed by back-off, in case two versions of the driver disagree about the slices.
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
_MAX_LISTED = 20
_DRY_RUN = {"dryRun": "All"}


class _Command(Enum):
    """A request of our own process to the publisher's thread."""

    REFRESH = "the wanted slices have changed"
    STOP = "stop"


class Publisher:
    """Publishes the slices of one driver on one node; if `node` is '', those of the network. `slices` returns the wanted slices."""

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
        self._changes: queue.SimpleQueue[SliceList | SliceEvent | _Command] = queue.SimpleQueue()
        self._cache, self._dropped = SliceCache(), DroppedFields(journal)
        self._watch = SliceWatch(api, driver, node, self._changes.put, lambda: self._cache.writes)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._errors, self._repairs = Backoff(0.2, 5), Backoff(0.1, 10)
        self._list: SliceList | None = None
        self._is_owner_current = True
        self._wanted_slices: list[Object] | None = None
        self._complete: dict[str, Object] = {}  # the wanted slices with list attributes, by name
        self._keeps_lists, self._keeps_counters = True, True
        self._has_probed_counters = False
        self._accepted: dict[str, Object] = {}
        self._is_own_change = True
        self._last_refusal = ""

    @property
    def slice_count(self) -> int:
        """The number of slices in the API server, as far as known."""
        return len(self._cache.slices)

    @property
    def slice_names(self) -> frozenset[str]:
        """The names of the slices in the API server, as far as known."""
        return frozenset(self._cache.slices)

    @property
    def is_alive(self) -> bool:
        """Return True while both threads run."""
        return self._thread.is_alive() and self._watch.is_alive

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        self._watch.start()

    def refresh(self) -> None:
        """Update the slices soon, because the wanted ones have changed. Do not wait for it."""
        self._changes.put(_Command.REFRESH)

    def stop(self) -> None:
        """Stop the threads. Close the API client first.

        The slices stay: they are correct after a restart, and the kubelet removes them after an uninstall.
        """
        self._stopped.set()
        self._changes.put(_Command.STOP)
        self._watch.stop()
        if self._thread.is_alive():
            self._thread.join(1)

    def _run(self) -> None:
        delay: float | None = None
        while not self._stopped.is_set():
            try:
                self._receive(delay)
                self._reconcile()
                delay = None
            except ApiError as error:
                self._report(error)
                delay = self._errors.next_delay()
            except Exception:  # without this thread, the node would lose its devices permanently
                log.exception("unexpected error in the publisher, trying again")
                delay = self._errors.next_delay()

    def _receive(self, timeout: float | None) -> None:
        """Handle all queued changes. Wait up to `timeout` seconds for the first one; without a limit if it is None."""
        with contextlib.suppress(queue.Empty):
            self._handle(self._changes.get(timeout=timeout))
            while True:
                self._handle(self._changes.get_nowait())

    def _handle(self, change: SliceList | SliceEvent | _Command) -> None:
        if isinstance(change, SliceList):
            # The server may have been upgraded or reconfigured, so what it keeps is determined again.
            self._list, self._wanted_slices, self._is_own_change = change, None, True
            self._keeps_lists, self._keeps_counters, self._has_probed_counters = True, True, False
            self._accepted.clear()
            self._cache.replace_all(change.items, change.resource_version, change.writes_before)
            self._is_owner_current = True
        elif isinstance(change, SliceEvent):
            if self._cache.apply_event(change):
                self._is_owner_current = False
                self._journal.record("slice-gone", slice=change.item["metadata"]["name"])
        elif change is _Command.REFRESH:
            self._is_own_change, self._wanted_slices = True, None

    def _reconcile(self) -> None:
        """Write the slices if they differ from the wanted ones."""
        if self._stopped.is_set() or not self._list:
            return
        if self._plan(self._wanted()):
            if not self._is_own_change:
                # Another client wrote. It may be deleting one slice after the other: after a delay, one plan restores all of them.
                self._stopped.wait(self._repairs.next_delay())
                self._receive(0)
            self._write()
        self._is_own_change = False
        self.published.set()

    def _write(self) -> None:
        """Write the slices. If a slice with list attributes is refused, that feature may be off: try again without them."""
        self._check_owner()
        try:
            self._execute_plan()
        except ApiError as refused:
            has_lists = self._keeps_lists and without_list_attributes(self._wanted()) != self._wanted()
            if refused.status != 422 or not has_lists:
                raise
            self._keeps_lists, self._wanted_slices = False, None
            try:
                self._execute_plan()
            except ApiError:
                self._keeps_lists, self._wanted_slices = True, None
                raise
            for name, complete in self._complete.items():
                self._dropped.compare_fields(complete, self._cache.slices[name])

    def _check_owner(self) -> None:
        """Look up the owner again after slices were deleted: the garbage collector deletes them if the node was recreated."""
        if self._is_owner_current:
            return
        server = self._current_list()
        owner = self._watch.owner(server.served)
        if owner != server.owner:
            self._list, self._wanted_slices = replace(server, owner=owner), None
        self._is_owner_current = True

    def _wanted(self) -> list[Object]:
        """Return the slices that this server should store; computed again after the hardware or the server may have changed."""
        if self._wanted_slices is None:
            server = self._current_list()
            slices = list(self._slices(server.owner))
            problems = find_problems(slices)
            if problems:
                raise ApiError("validation of the wanted slices", 422, "; ".join(problems[:_MAX_LISTED]))
            if not server.served.separate_counter_slices:
                slices = with_counters_beside_devices(slices)
            if self._has_probed_counters:
                all_slices, slices = slices, slices if self._keeps_counters else without_overlapping_devices(slices)
                self._dropped.compare_devices(all_slices, slices)
            self._wanted_slices = slices if self._keeps_lists else without_list_attributes(slices)
            self._complete = {each["metadata"]["name"]: each for each in slices}
        return self._wanted_slices

    def _plan(self, wanted: Sequence[Object]) -> Plan:
        return self._planner(wanted, self._cache.slices.values(), self._accepted)

    def _execute_plan(self) -> None:
        self._probe_counters()
        wanted = self._wanted()
        for new in self._plan(wanted).replace:
            self._probe_dropped_fields(new)
        writes = self._plan(wanted)
        for old in writes.delete:
            self._api.delete(self._path(old), uid=old["metadata"]["uid"])
            self._cache.record_delete(old)
            self._journal.record("slice-write", verb="delete", slice=old["metadata"]["name"])
        for new in writes.replace:
            self._record_write("replace", new, self._api.replace(self._path(new), self._from_v1(new)))
        for new in writes.create:
            self._record_write("create", new, self._api.create(self._path(), self._from_v1(new)))

    def _probe_counters(self) -> None:
        """Find out with a dry run if the API server keeps `consumesCounters`, before a scheduler sees devices that overlap."""
        new = next(filter(consumes_counters, self._wanted()), None)
        if self._has_probed_counters or not new:
            return
        stored = self._cache.slices.get(new["metadata"]["name"])
        if stored:
            sent = self._from_v1(with_generation(as_update_of(stored, new), generation_of(stored)))
            response = self._api.replace(self._path(new), sent, _DRY_RUN)
        else:
            response = self._api.create(self._path(), self._from_v1(with_generation(new, 1)), _DRY_RUN)
        self._keeps_counters, self._has_probed_counters = consumes_counters(self._to_v1(response)), True
        self._wanted_slices = None

    def _probe_dropped_fields(self, new: Object) -> None:
        """Find out with a dry run if the stored slice lacks fields because the API server drops them; if so, accept it without a write."""
        stored = self._cache.slices[new["metadata"]["name"]]
        if not only_lacks_fields(stored, new):
            return
        sent = self._from_v1(with_generation(new, generation_of(stored)))
        kept = self._to_v1(self._api.replace(self._path(new), sent, _DRY_RUN))
        if comparable(kept) == comparable(stored):
            self._accept(new, stored)

    def _record_write(self, verb: str, sent: Object, response: Object) -> None:
        stored = self._to_v1(response)
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
        """Remember that the API server stores `stored` when `sent` is written."""
        # Only the current state of each slice matters, so there is one entry for each.
        current = {state_key(slice_) for slice_ in self._cache.slices.values()}
        self._accepted = {state: sent_spec for state, sent_spec in self._accepted.items() if state in current}
        self._accepted[state_key(stored)] = comparable(sent)
        self._dropped.compare_fields(self._complete[sent["metadata"]["name"]], stored)

    def _report(self, error: ApiError) -> None:
        if self._stopped.is_set():
            return
        log.warning("cannot write the slices, trying again: %s", error)
        if error.status == 422 and error.message != self._last_refusal:
            # Retrying does not help against an invalid slice, so it is recorded for the administrator.
            self._last_refusal = error.message
            self._journal.record("slices-refused", request=error.request, message=error.message)

    def _path(self, slice_: Object | None = None) -> str:
        name = [slice_["metadata"]["name"]] if slice_ else []
        return self._current_list().served.path("resourceslices", *name)

    def _from_v1(self, slice_: Object) -> Object:
        return self._current_list().served.from_v1(slice_)

    def _to_v1(self, slice_: Object) -> Object:
        return self._current_list().served.to_v1(slice_)

    def _current_list(self) -> SliceList:
        if not self._list:
            raise RuntimeError("no slice can be written before the first list")
        return self._list
