"""What the API server has of one driver's slices, followed by a watch. The publisher starts it and gets its news.

The news come from a thread of its own, so that a write never waits for the watch, nor the watch for a write.
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
    """All slices, as of one moment, and what is needed to write them. `writes_before` says which of our own writes came before it."""

    served: ServedVersion
    owner: Owner
    items: tuple[Object, ...]
    version: int
    writes_before: int


@dataclass(frozen=True)
class SliceEvent:
    """One change of one slice."""

    kind: str
    item: Object


class SliceCache:
    """The slices as we know them: from lists, from events, and from the answers to our own writes, whichever is newest.

    Our own writes are counted, so that of each list it is known which of them came before it. The versions alone do not tell: when a
    server's store is restored from a backup, they begin again below those that we know.
    """

    def __init__(self) -> None:
        self.slices: dict[str, Object] = {}
        self.writes = 0
        self._written: dict[str, int] = {}  # by name of a slice: our last write to it
        self._removed: dict[str, int] = {}  # by UID

    def replace_all(self, items: Iterable[Object], version: int, writes_before: int) -> None:
        """A list. What we wrote after `writes_before`, and newer than the list, it cannot know."""
        self._written = {name: write for name, write in self._written.items() if write > writes_before}
        self._removed = {uid: write for uid, write in self._removed.items() if write > writes_before}
        known = {name: item for name, item in self.slices.items() if name in self._written and _version(item) > version}
        self.slices = {**{_name(item): item for item in items if _uid(item) not in self._removed}, **known}

    def apply_event(self, event: SliceEvent) -> bool:
        """An event; True when somebody else made a slice go. One that is older than what we know says nothing."""
        known = self.slices.get(_name(event.item))
        if event.kind == "DELETED":
            is_ours = known is not None and _uid(known) == _uid(event.item)
            if is_ours:
                del self.slices[_name(event.item)]
            return is_ours
        is_old = _uid(event.item) in self._removed or (known and _version(known) > _version(event.item))
        if event.kind in {"ADDED", "MODIFIED"} and not is_old:
            self.slices[_name(event.item)] = event.item
        return False

    def record_write(self, stored: Object) -> None:
        """The answer to a write of ours."""
        self.writes += 1
        self._written[_name(stored)] = self.writes
        self.slices[_name(stored)] = stored

    def record_delete(self, old: Object) -> None:
        """We deleted it; an event that is still on its way must not bring it back."""
        self.writes += 1
        self.slices.pop(_name(old), None)
        self._removed[_uid(old)] = self.writes


class SliceWatch:
    """Lists and watches, for ever. `node` is '' for the slices of the network; `writes` counts those of the publisher."""

    def __init__(
        self,
        api: ApiClient,
        driver: str,
        node: str,
        on_news: Callable[[SliceList | SliceEvent], None],
        writes: Callable[[], int],
    ) -> None:
        self._api, self._driver, self._node, self._on_news, self._writes = api, driver, node, on_news, writes
        self._query = {"fieldSelector": f"spec.driver={driver},spec.nodeName={node}"}
        self._stopped = threading.Event()
        self._errors = Backoff(0.2, 5)
        self._thread = threading.Thread(target=self._run, name="lookout", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread still does its work."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End. Close the API first, which ends the watch."""
        self._stopped.set()
        if self.is_alive:
            self._thread.join(1)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
            except ApiError as trouble:
                if not self._stopped.wait(self._errors.next_delay()):  # an end that we caused ourselves is no news
                    log.warning("the slices could not be followed: %s", trouble)
            except Exception:  # without this thread nobody would repair the slices
                log.exception("the lookout stumbled over an error of its own")
                self._stopped.wait(self._errors.next_delay())

    def _follow(self) -> None:
        """One list and its watch. The version is asked for each time: a cluster may be upgraded below us."""
        found = discover(self._api)
        owner = self.owner(found)
        slices, writes_before = found.path("resourceslices"), self._writes()
        listed = self._api.get(slices, self._query, timeout=LIST_TIMEOUT)
        since = str(listed["metadata"]["resourceVersion"])
        items = tuple(found.to_v1(item) for item in listed.get("items") or [])
        self._on_news(SliceList(found, owner, items, _number(since), writes_before))
        for kind, item in watch_events(self._api, slices, self._query, since):
            self._on_news(SliceEvent(kind, found.to_v1(item)))

    def owner(self, speaks: ServedVersion) -> Owner:
        """The object that the slices belong to, as it is now."""
        if self._node:
            node = self._api.get(url_path("api", "v1", "nodes", self._node))
            return Owner(self._node, str(node["metadata"]["uid"]))
        # Nothing else of a driver's installation belongs to the cluster, as these slices do, and has the driver's name.
        try:
            found = self._api.get(speaks.path("deviceclasses", self._driver))
        except ApiError as refused:
            if refused.status not in {403, 404}:
                raise
            log.info("the slices of the network will have no owner: %s", refused)
            return Owner("", "")
        return Owner(self._driver, str(found["metadata"]["uid"]), f"{GROUP}/{speaks.version}", "DeviceClass")


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _uid(item: Object) -> str:
    return str(item["metadata"].get("uid"))


def _version(item: Object) -> int:
    return _number(str(item["metadata"].get("resourceVersion")))


def _number(version: str) -> int:
    """Versions are numbers that rise; 0, which hides nothing, should that ever change."""
    return int(version) if version.isascii() and version.isdigit() else 0
