"""What a view believes when news come in any order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fake_driver.publishing.slice_watch import SliceCache, SliceEvent

Object = dict[str, Any]


def item(name: str = "a", version: int = 1, uid: str = "u1") -> Object:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}}


def view(*items: Object, version: int = 1) -> SliceCache:
    found = SliceCache()
    found.replace_all(items, version, 0)
    return found


def test_news_are_believed() -> None:
    found = view(item())
    assert not found.apply_event(SliceEvent("MODIFIED", item(version=2)))
    assert not found.apply_event(SliceEvent("ADDED", item("b", 3, "u2")))
    assert found.slices == {"a": item(version=2), "b": item("b", 3, "u2")}
    assert found.apply_event(SliceEvent("DELETED", item(version=2)))
    assert list(found.slices) == ["b"]


def test_an_event_that_is_older_than_our_own_write_says_nothing() -> None:
    found = view(item())
    found.record_write(item(version=5))
    found.apply_event(SliceEvent("MODIFIED", item(version=3)))
    assert found.slices["a"] == item(version=5)


def test_the_old_end_of_an_object_does_not_hide_its_successor() -> None:
    found = view(item())
    found.record_write(item(version=5, uid="u2"))
    assert not found.apply_event(SliceEvent("DELETED", item(version=4)))
    assert found.slices["a"] == item(version=5, uid="u2")


def test_what_we_deleted_does_not_come_back_with_late_news() -> None:
    found = view(item())
    found.record_delete(item())
    found.apply_event(SliceEvent("MODIFIED", item(version=2)))
    assert found.slices == {}
    found.replace_all([item(version=2)], 2, 0)
    assert found.slices == {}
    found.apply_event(SliceEvent("MODIFIED", item(version=2)))
    assert found.slices == {}
    found.replace_all([item(version=2)], 2, found.writes)
    assert list(found.slices) == ["a"]


def test_a_list_does_not_undo_what_was_written_after_it() -> None:
    found = view(item())
    before = found.writes
    found.record_write(item("b", 7, "u2"))
    found.replace_all([item(version=3)], 5, before)
    assert found.slices == {"a": item(version=3), "b": item("b", 7, "u2")}
    found.replace_all([item(version=3)], 8, found.writes)
    assert list(found.slices) == ["a"]


def test_a_write_that_was_answered_late_does_not_hide_what_came_after_it() -> None:
    found = view(item())
    found.record_write(item("b", 7, "u2"))
    found.replace_all([item()], 9, 0)
    assert list(found.slices) == ["a"]


def test_a_server_whose_versions_begin_again_is_believed() -> None:
    found = view()
    found.record_write(item(version=1000))
    found.record_delete(item("b", 1001, "u2"))
    found.replace_all([item("b", 15, "u2")], 20, found.writes)
    assert list(found.slices) == ["b"]


@given(st.lists(st.tuples(st.sampled_from(["ADDED", "MODIFIED"]), st.integers(1, 20)), max_size=8))
def test_the_newest_version_always_wins(events: list[tuple[str, int]]) -> None:
    found = view(item(version=5), version=5)
    for kind, version in events:
        found.apply_event(SliceEvent(kind, item(version=version)))
    assert found.slices["a"] == item(version=max([5, *(version for _, version in events)]))


def test_versions_that_are_no_numbers_hide_nothing() -> None:
    odd = {"metadata": {"name": "a", "uid": "u1", "resourceVersion": "x9"}}
    found = view(odd)
    found.apply_event(SliceEvent("MODIFIED", item(version=1)))
    assert found.slices["a"] == item(version=1)
