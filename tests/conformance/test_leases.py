from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from testbed.conformance import leases
from testbed.conformance.leases import FILE, Leases, workers


class _Test(threading.Thread):
    """A test in another worker. It sets `has` when it holds its lease, and ends on `finish`."""

    def __init__(self, queue: Leases, name: str, devices: int | None, order: list[str], special: str = "") -> None:
        super().__init__(daemon=True)
        self.queue, self.who, self.devices, self.order, self.special = queue, name, devices, order, special
        self.waits, self.has, self.ends = threading.Event(), threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self.queue.lease(self.who, self.devices, lambda _: self.waits.set(), reserved_class=self.special):
            self.order.append(self.who)
            self.has.set()
            self.ends.wait(10)

    def finish(self) -> None:
        self.ends.set()
        self.join(10)


@pytest.fixture
def queue(tmp_path: Path) -> Leases:
    return Leases(tmp_path, 4)


def test_tests_with_enough_devices_run_at_the_same_time(queue: Leases) -> None:
    order: list[str] = []
    first, second = _Test(queue, "first", 3, order), _Test(queue, "second", 1, order)
    assert first.has.wait(5)
    assert second.has.wait(5)
    assert not second.waits.is_set()
    first.finish()
    second.finish()
    assert json.loads((queue.folder / FILE).read_text()) == []


def test_a_test_waits_for_the_devices_of_another_and_reports_which_test(queue: Leases) -> None:
    said: list[str] = []
    first = _Test(queue, "first", 3, [])
    assert first.has.wait(5)

    def told(who: str) -> None:
        said.append(who)
        first.ends.set()

    with queue.lease("second", 2, told):
        assert said == ["first"]


def test_devices_of_a_reserved_class_are_leased_as_a_whole(queue: Leases) -> None:
    order: list[str] = []
    first = _Test(queue, "first", 1, order, "capacity")
    assert first.has.wait(5)
    same = _Test(queue, "same", 1, order, "capacity")
    assert same.waits.wait(5)
    other = _Test(queue, "other", 1, order, "binding")
    assert other.has.wait(5)
    everything = _Test(queue, "everything", None, order)
    assert everything.waits.wait(5)
    assert order == ["first", "other"]
    for each in (first, other, same, everything):
        each.finish()
    assert order == ["first", "other", "same", "everything"]


def test_no_test_overtakes_one_that_needs_all_devices(queue: Leases) -> None:
    order: list[str] = []
    first = _Test(queue, "first", 1, order)
    assert first.has.wait(5)
    everything = _Test(queue, "everything", None, order)
    assert everything.waits.wait(5)
    late = _Test(queue, "late", 1, order)
    assert late.waits.wait(5)
    assert not late.has.is_set()
    first.finish()
    assert everything.has.wait(5)
    everything.finish()
    assert late.has.wait(5)
    late.finish()
    assert order == ["first", "everything", "late"]


def test_a_request_for_more_devices_than_there_are_gets_all(tmp_path: Path) -> None:
    with Leases(tmp_path, 2).lease("greedy", 3):
        assert json.loads((tmp_path / FILE).read_text())[0]["devices"] == 2
    with Leases(tmp_path, 0).lease("where nothing is published", 1):
        assert json.loads((tmp_path / FILE).read_text())[0]["devices"] == 1


def test_the_lease_of_a_killed_worker_ends(queue: Leases) -> None:
    dead = {"test": "dead", "pid": 2**22 + 1, "started": 1, "devices": 4}
    (queue.folder / FILE).write_text(json.dumps([dead]))
    waited: list[str] = []
    with queue.lease("next", None, waited.append):
        assert not waited


def test_the_lease_of_a_failed_test_ends(queue: Leases) -> None:
    with pytest.raises(ZeroDivisionError), queue.lease("bad", None):
        raise ZeroDivisionError
    waited: list[str] = []
    with queue.lease("next", None, waited.append):
        assert not waited


def test_a_new_run_discards_the_queue_of_an_earlier_one(queue: Leases) -> None:
    (queue.folder / FILE).write_text("not JSON")
    leases.discard(queue.folder)
    with queue.lease("first", 1):
        pass


@pytest.mark.parametrize(
    ("cores", "devices", "worth"), [(2, 8, 4), (8, 8, 4), (8, 32, 16), (1, 8, 2), (4, 5, 2), (4, 3, 0), (2, 0, 0)]
)
def test_cores_and_devices_limit_the_workers(cores: int, devices: int, worth: int) -> None:
    assert workers(cores, devices) == worth
