from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from fake_driver.api import watch
from fake_driver.api.client import ApiClient
from fake_driver.api.watch import watch_events
from fake_driver.errors import ApiError

ADDED = {"type": "ADDED", "object": {"metadata": {"name": "a"}}}


class Watch(ApiClient):
    """An API client whose watch yields these events and ends."""

    def __init__(self, *events: dict[str, Any]) -> None:
        super().__init__("http://nowhere")
        self._events = events

    def watch(self, where: str, query: Any, seconds: int) -> Generator[dict[str, Any]]:
        assert query == {"a": "b", "resourceVersion": "7"}
        yield from self._events


def follow(*events: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return watch_events(Watch(*events), "/apis/slices", {"a": "b"}, "7")


def test_events_are_yielded_until_the_watch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_SHORTEST", 0)
    assert list(follow(ADDED, ADDED)) == [("ADDED", {"metadata": {"name": "a"}})] * 2


def test_an_error_event_is_an_api_error() -> None:
    with pytest.raises(ApiError, match=r"watch /apis/slices: 410: too old") as gone:
        list(follow(ADDED, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}))
    assert gone.value.status == 410


def test_a_watch_that_ends_immediately_is_an_api_error() -> None:
    told = follow(ADDED)
    assert next(told)[0] == "ADDED"
    with pytest.raises(ApiError, match="ended the watch immediately"):
        next(told)
