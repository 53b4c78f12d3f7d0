"""Lists and watches the ResourceSlices of one driver, and keeps a cache of them. The publisher uses both.

The watch runs in its own thread, so that writes and the watch never wait for each other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fake_driver.api.backoff import Backoff
from fake_driver.api.client import ApiClient, url_path
from fake_driver.api.served_versions import GROUP, ServedVersion, discover
from fake_driver.api.watch import LIST_TIMEOUT, watch_events
from fake_driver.errors import ApiError
from fake_driver.publishing.slices import Object, Owner

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SliceList:
    """The result of a list, with what is needed to write slices. `writes_before` is the number of our own writes before the list."""

    served: ServedVersion
    owner: Owner
    items: tuple[Object, ...]
    resource_version: int
    writes_before: int


@dataclass(frozen=True)
class SliceEvent:
    """A watch event for one slice."""

    kind: str
    item: Object


class SliceCache:
    """The newest known state of all slices: from lists, from events, and from the responses to our own writes.

    Our own writes are counted, so that each list is known to be older or newer than a write. Resource versions alone are not enough: after
    the server's store was restored from a backup, they continue below the ones that we know.
    """

    def __init__(self) -> None:
        self.slices: dict[str, Object] = {}
        self.writes = 0
        self._written: dict[str, int] = {}  # by name of a slice: our last write to it
        self._removed: dict[str, int] = {}  # by UID

    def replace_all(self, items: Iterable[Object], resource_version: int, writes_before: int) -> None:
        """Replace the cache with a list. It cannot contain our own writes after `writes_before` that are newer than the list."""
        self._written = {name: write for name, write in self._written.items() if write > writes_before}
        self._removed = {uid: write for uid, write in self._removed.items() if write > writes_before}
        known = {
            name: item
            for name, item in self.slices.items()
            if name in self._written and _version(item) > resource_version
        }
        self.slices = {**{_name(item): item for item in items if _uid(item) not in self._removed}, **known}

    def apply_event(self, event: SliceEvent) -> bool:
        """Apply an event, unless it is older than the cache. Return True if another client deleted a slice."""
        known = self.slices.get(_name(event.item))
        if event.kind == "DELETED":
            is_known = known is not None and _uid(known) == _uid(event.item)
            if is_known:
                del self.slices[_name(event.item)]
            return is_known
        is_old = _uid(event.item) in self._removed or (known and _version(known) > _version(event.item))
        if event.kind in {"ADDED", "MODIFIED"} and not is_old:
            self.slices[_name(event.item)] = event.item
        return False

    def record_write(self, stored: Object) -> None:
        """Store the response to a create or update."""
        self.writes += 1
        self._written[_name(stored)] = self.writes
        self.slices[_name(stored)] = stored

    def record_delete(self, old: Object) -> None:
        """Remove a slice that we deleted; a later event about this object must not add it again."""
        self.writes += 1
        self.slices.pop(_name(old), None)
        self._removed[_uid(old)] = self.writes


class SliceWatch:
    """Lists and watches until it is stopped. `node` is '' for the slices of the network; `writes` returns the number of our own writes."""

    def __init__(
        self,
        api: ApiClient,
        driver: str,
        node: str,
        on_change: Callable[[SliceList | SliceEvent], None],
        writes: Callable[[], int],
    ) -> None:
        self._api, self._driver, self._node, self._on_change, self._writes = api, driver, node, on_change, writes
        self._query = {"fieldSelector": f"spec.driver={driver},spec.nodeName={node}"}
        self._stopped = threading.Event()
        self._errors = Backoff(0.2, 5)
        self._thread = threading.Thread(target=self._run, name="slice-watch", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Return True while the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Close the API client first, which ends the watch."""
        self._stopped.set()
        if self.is_alive:
            self._thread.join(1)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._list_and_watch()
            except ApiError as error:
                if not self._stopped.wait(self._errors.next_delay()):  # our own stop ends the watch with an error, too
                    log.warning("cannot watch the slices, trying again: %s", error)
            except Exception:  # without this thread, deleted slices would not be restored
                log.exception("unexpected error in the slice watch, trying again")
                self._stopped.wait(self._errors.next_delay())

    def _list_and_watch(self) -> None:
        """List, then watch until the watch ends. The API version is discovered each time, because the cluster may have been upgraded."""
        served = discover(self._api)
        owner = self.owner(served)
        slices, writes_before = served.path("resourceslices"), self._writes()
        listed = self._api.get(slices, self._query, timeout=LIST_TIMEOUT)
        since = str(listed["metadata"]["resourceVersion"])
        items = tuple(served.to_v1(item) for item in listed.get("items") or [])
        self._on_change(SliceList(served, owner, items, _number(since), writes_before))
        for kind, item in watch_events(self._api, slices, self._query, since):
            self._on_change(SliceEvent(kind, served.to_v1(item)))

    def owner(self, served: ServedVersion) -> Owner:
        """Return the current owner of the slices."""
        if self._node:
            node = self._api.get(url_path("api", "v1", "nodes", self._node))
            return Owner(self._node, str(node["metadata"]["uid"]))
        # The DeviceClass is the only cluster-scoped object of an installation that has the driver's name.
        try:
            found = self._api.get(served.path("deviceclasses", self._driver))
        except ApiError as refused:
            if refused.status not in {403, 404}:
                raise
            log.info("the slices of the network get no owner: %s", refused)
            return Owner("", "")
        return Owner(self._driver, str(found["metadata"]["uid"]), f"{GROUP}/{served.version}", "DeviceClass")


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _uid(item: Object) -> str:
    return str(item["metadata"].get("uid"))


def _version(item: Object) -> int:
    return _number(str(item["metadata"].get("resourceVersion")))


def _number(resource_version: str) -> int:
    """Return a resource version as a number, so that versions can be compared; 0, the oldest, if it is not a number."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else 0
