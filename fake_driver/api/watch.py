"""One watch, until the server ends it. Slice watch and attach controller use it; they retry with back-off after an error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from fake_driver.api.client import ApiClient, Object
from fake_driver.errors import ApiError

LIST_TIMEOUT = 60.0  # seconds for the list before a watch: it may be long, and no call waits for it
_SECONDS = 300
_SHORTEST = 1.0  # seconds; a watch that ends sooner is an error, otherwise the driver would list again and again


def watch_events(
    api: ApiClient, path: str, query: dict[str, str], resource_version: str
) -> Iterator[tuple[str, Object]]:
    """Yield the type and the object of each event after this resource version; raise ApiError on an error or an immediate end."""
    began = time.monotonic()
    with contextlib.closing(api.watch(path, {**query, "resourceVersion": resource_version}, _SECONDS)) as events:
        for event in events:
            kind, item = str(event.get("type")), event.get("object", {})
            if kind == "ERROR":
                raise ApiError(f"watch {path}", int(item.get("code") or 0), str(item.get("message")))
            yield kind, item
    if time.monotonic() - began < _SHORTEST:
        raise ApiError(f"watch {path}", 0, "the server ended the watch immediately")
