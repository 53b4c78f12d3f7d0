"""Keeps the ResourceSlices in the API server equal to the wanted ones, for as long as the driver lives. One thread.

It watches, because others write too: every kubelet that starts deletes all slices of its node, and only the driver brings them back.
The first repair is made at once; when repairs follow on each other (two versions of the driver that disagree), they get slower.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from fake_driver.api import Api, path
from fake_driver.errors import ApiError
from fake_driver.journal import Journal
from fake_driver.slices import Object, Owner, Plan, comparable, dropped, key, plan

log = logging.getLogger(__name__)
SLICES = path("apis", "resource.k8s.io", "v1", "resourceslices")
_WATCH_SECONDS = 300


class Pace:
    """How long to wait before trying again: a moment at first, then longer and longer, until there was calm for a while."""

    def __init__(
        self, first: float, longest: float, calm: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first, self._longest, self._calm, self._clock = first, longest, calm, clock
        self._last, self._wait = -math.inf, first

    def stumble(self) -> float:
        """Something went wrong; the seconds to wait now."""
        now = self._clock()
        is_new = now - self._last > self._calm + self._wait
        self._last, self._wait = now, self._first if is_new else min(self._wait * 2, self._longest)
        return self._wait * random.uniform(0.8, 1.0)  # noqa: S311 - it spreads load, it protects nothing


class Publisher:
    """The slices of one driver on one node."""

    def __init__(
        self, api: Api, driver: str, node: str, slices: Callable[[Owner], Sequence[Object]], journal: Journal
    ) -> None:
        self.published = threading.Event()
        self._api, self._slices, self._journal = api, slices, journal
        self._driver, self._node = driver, node
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._errors, self._repairs = Pace(0.2, 5), Pace(0.1, 10)
        self._there: dict[str, Object] = {}
        self._accepted: dict[str, Object] = {}

    @property
    def alive(self) -> bool:
        """Whether the thread still does its work."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End. The slices stay: after a restart they are right, and after an uninstall the kubelet removes them. Close the API first."""
        self._stopped.set()
        if self.alive:
            self._thread.join(1)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
            except ApiError as trouble:
                if not self._stopped.is_set():
                    log.warning("the slices cannot be kept up for now: %s", trouble)
                self._stopped.wait(self._errors.stumble())
            except Exception:  # without this thread the node would lose its devices for good
                log.exception("the publisher stumbled over an error of its own")
                self._stopped.wait(self._errors.stumble())

    def _follow(self) -> None:
        """Look at all slices, put them right, and watch until they need that again."""
        wanted = self._slices(self._owner())
        query = {"fieldSelector": f"spec.driver={self._driver},spec.nodeName={self._node}"}
        listed = self._api.get(SLICES, query)
        self._there = {item["metadata"]["name"]: item for item in listed.get("items") or []}
        self._put_right(wanted)
        since = {**query, "resourceVersion": str(listed["metadata"]["resourceVersion"])}
        with contextlib.closing(self._api.watch(SLICES, since, _WATCH_SECONDS)) as events:
            for event in events:
                self._learn(event)
                if self._plan(wanted):
                    # A wipe deletes slice after slice; a moment later one look sees them all.
                    self._stopped.wait(self._repairs.stumble())
                    return

    def _owner(self) -> Owner:
        node = self._api.get(path("api", "v1", "nodes", self._node))
        return Owner(self._node, str(node["metadata"]["uid"]))

    def _learn(self, event: Object) -> None:
        """What the watch says. An old end of an object must not hide its successor, hence the look at the UID."""
        kind, item = event.get("type"), event.get("object", {})
        if kind == "ERROR":
            raise ApiError(f"watch {SLICES}", int(item.get("code") or 0), str(item.get("message")))
        name = item["metadata"]["name"]
        known = self._there.get(name)
        if kind in {"ADDED", "MODIFIED"}:
            self._there[name] = item
        elif kind == "DELETED" and known and known["metadata"].get("uid") == item["metadata"].get("uid"):
            del self._there[name]
            self._journal.note("slice-gone", slice=name)

    def _plan(self, wanted: Sequence[Object]) -> Plan:
        return plan(wanted, self._there.values(), self._accepted)

    def _put_right(self, wanted: Sequence[Object]) -> None:
        writes = self._plan(wanted)
        for old in writes.delete:
            self._api.delete(_address(old), uid=old["metadata"]["uid"])
            del self._there[old["metadata"]["name"]]
            self._journal.note("slice-write", verb="delete", slice=old["metadata"]["name"])
        for new in writes.replace:
            self._store("replace", new, self._api.replace(_address(new), new))
        for new in writes.create:
            self._store("create", new, self._api.create(SLICES, new))
        self.published.set()

    def _store(self, verb: str, sent: Object, stored: Object) -> None:
        name = sent["metadata"]["name"]
        self._there[name] = stored
        # Only the present state of each slice matters, so there is one entry for each.
        self._accepted = {**_of_slices(self._accepted, self._there), key(stored): comparable(sent)}
        generation = stored["spec"]["pool"]["generation"]
        self._journal.note(
            "slice-write", verb=verb, slice=name, devices=len(sent["spec"].get("devices", ())), generation=generation
        )
        lost = dropped(sent, stored)
        if lost:
            self._journal.note("slice-fields-dropped", slice=name, fields=lost[:20])
            log.warning(
                "the API server dropped fields of slice %s; is a feature gate off? %s", name, ", ".join(lost[:20])
            )


def _of_slices(accepted: Mapping[str, Object], there: Mapping[str, Object]) -> dict[str, Object]:
    current = {key(slice_) for slice_ in there.values()}
    return {state: asked for state, asked in accepted.items() if state in current}


def _address(slice_: Object) -> str:
    return f"{SLICES}/{slice_['metadata']['name']}"
