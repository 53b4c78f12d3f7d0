"""One watch, as `lookout` and `attaching` follow it, until the server ends it. What went wrong is an error, to be paced."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from fake_driver.api.client import ApiClient, Object
from fake_driver.errors import ApiError

LIST_TIMEOUT = 60.0  # for the list before it: nobody waits for that, and it may be long
_SECONDS = 300
_AT_ONCE = 1.0  # a server, or a proxy before it, that ends watches sooner would be asked for list after list


def watch_events(api: ApiClient, path: str, query: dict[str, str], version: str) -> Iterator[tuple[str, Object]]:
    """What happens from that version on."""
    began = time.monotonic()
    with contextlib.closing(api.watch(path, {**query, "resourceVersion": version}, _SECONDS)) as events:
        for event in events:
            kind, item = str(event.get("type")), event.get("object", {})
            if kind == "ERROR":
                raise ApiError(f"watch {path}", int(item.get("code") or 0), str(item.get("message")))
            yield kind, item
    if time.monotonic() - began < _AT_ONCE:
        raise ApiError(f"watch {path}", 0, "the server ended it at once")
