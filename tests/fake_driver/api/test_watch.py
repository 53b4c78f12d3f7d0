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
    """A server that has these events and ends the watch."""

    def __init__(self, *events: dict[str, Any]) -> None:
        super().__init__("http://nowhere")
        self._events = events

    def watch(self, where: str, query: Any, seconds: int) -> Generator[dict[str, Any]]:
        assert query == {"a": "b", "resourceVersion": "7"}
        yield from self._events


def follow(*events: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return watch_events(Watch(*events), "/apis/slices", {"a": "b"}, "7")


def test_what_happens_is_told_until_the_watch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_AT_ONCE", 0)
    assert list(follow(ADDED, ADDED)) == [("ADDED", {"metadata": {"name": "a"}})] * 2


def test_an_error_that_comes_as_an_event_is_one() -> None:
    with pytest.raises(ApiError, match=r"watch /apis/slices: 410: too old") as gone:
        list(follow(ADDED, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}))
    assert gone.value.status == 410


def test_a_watch_that_ends_at_once_is_an_error_though_nothing_is_lost() -> None:
    told = follow(ADDED)
    assert next(told)[0] == "ADDED"
    with pytest.raises(ApiError, match="ended it at once"):
        next(told)
