"""The slice cache, with lists, events and responses in any order."""

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


def test_lists_and_events_update_the_cache() -> None:
    found = view(item())
    assert not found.apply_event(SliceEvent("MODIFIED", item(version=2)))
    assert not found.apply_event(SliceEvent("ADDED", item("b", 3, "u2")))
    assert found.slices == {"a": item(version=2), "b": item("b", 3, "u2")}
    assert found.apply_event(SliceEvent("DELETED", item(version=2)))
    assert list(found.slices) == ["b"]


def test_an_event_that_is_older_than_our_own_write_is_ignored() -> None:
    found = view(item())
    found.record_write(item(version=5))
    found.apply_event(SliceEvent("MODIFIED", item(version=3)))
    assert found.slices["a"] == item(version=5)


def test_the_late_deletion_of_an_object_does_not_remove_its_successor() -> None:
    found = view(item())
    found.record_write(item(version=5, uid="u2"))
    assert not found.apply_event(SliceEvent("DELETED", item(version=4)))
    assert found.slices["a"] == item(version=5, uid="u2")


def test_late_events_do_not_restore_a_deleted_slice() -> None:
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


def test_a_list_does_not_undo_a_later_write() -> None:
    found = view(item())
    before = found.writes
    found.record_write(item("b", 7, "u2"))
    found.replace_all([item(version=3)], 5, before)
    assert found.slices == {"a": item(version=3), "b": item("b", 7, "u2")}
    found.replace_all([item(version=3)], 8, found.writes)
    assert list(found.slices) == ["a"]


def test_the_late_response_of_a_write_does_not_hide_a_newer_state() -> None:
    found = view(item())
    found.record_write(item("b", 7, "u2"))
    found.replace_all([item()], 9, 0)
    assert list(found.slices) == ["a"]


def test_a_server_whose_resource_versions_start_again_is_trusted() -> None:
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


def test_resource_versions_that_are_no_numbers_hide_nothing() -> None:
    odd = {"metadata": {"name": "a", "uid": "u1", "resourceVersion": "x9"}}
    found = view(odd)
    found.apply_event(SliceEvent("MODIFIED", item(version=1)))
    assert found.slices["a"] == item(version=1)
