from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.api import Api
from fake_driver.hardware.model import Device
from fake_driver.journal import Journal
from fake_driver.pace import Pace
from fake_driver.publisher import Publisher
from fake_driver.slices import Owner, desired

if TYPE_CHECKING:
    from tests.fake_driver.conftest import FakeApi

DRIVER = "gpu.example"


@pytest.fixture
def publish(server: str, tmp_path: Path) -> Iterator[Callable[[int], Publisher]]:
    """Start to publish that many devices."""
    ends: list[Callable[[], None]] = []

    def start(count: int) -> Publisher:
        api = Api(server)
        gpus = tuple(Device(f"gpu-{index}", "gpu", {"index": index}, {}) for index in range(count))
        publisher = Publisher(
            api, DRIVER, "worker", lambda owner: desired(DRIVER, owner, gpus), Journal(tmp_path / "journal.jsonl")
        )
        ends.extend([api.close, publisher.stop])
        publisher.start()
        return publisher

    yield start
    for end in ends:
        end()


def devices(fake_api: FakeApi) -> int:
    return sum(len(one["spec"].get("devices", [])) for one in fake_api.slices.values())


def test_slices_are_published_once_and_belong_to_the_node(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    publisher = publish(130)
    assert publisher.published.wait(5)
    assert devices(fake_api) == 130
    assert [write.split()[0] for write in fake_api.writes] == ["POST", "POST"]
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in fake_api.slices.values()} == {"uid-of-worker"}


def test_a_restart_writes_nothing(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    assert publish(2).published.wait(5)
    fake_api.writes.clear()
    assert publish(2).published.wait(5)
    assert fake_api.writes == []


def test_slices_that_a_starting_kubelet_deleted_are_back_at_once(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    assert publish(300).published.wait(5)
    fake_api.remove()
    fake_api.until(lambda: devices(fake_api) == 300, seconds=2)


def test_an_edit_by_somebody_else_is_repaired(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    assert publish(2).published.wait(5)
    (name,) = fake_api.slices
    fake_api.edit(name, lambda slice_: slice_["spec"]["devices"].pop())
    fake_api.until(lambda: devices(fake_api) == 2)


def test_slices_of_an_earlier_time_are_removed(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    (old,) = desired(DRIVER, Owner("worker", "x"), (Device("gpu-9", "gpu", {}, {}),))
    with fake_api.changed:
        fake_api.answer("POST", "/apis/resource.k8s.io/v1/resourceslices", {**old, "metadata": {"name": "old"}})
    assert publish(2).published.wait(5)
    assert list(fake_api.slices) == [f"00000-{DRIVER}-worker"]


def test_trouble_of_the_api_server_is_waited_out(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    refused = threading.Event()

    def refuse(method: str, path: str) -> tuple[int, str] | None:
        if method == "POST" and not refused.is_set():
            refused.set()
            return 403, "the policy says no"
        return None

    fake_api.refuse = refuse
    assert publish(2).published.wait(5)
    assert refused.is_set()


def test_two_processes_publish_each_device_once(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    both = publish(200), publish(200)
    assert all(one.published.wait(5) for one in both)
    assert devices(fake_api) == 200


def test_what_the_api_server_drops_is_told_and_not_asked_for_again(
    publish: Callable[[int], Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    def without_index(spec: dict[str, Any]) -> dict[str, Any]:
        for device in spec["devices"]:
            device["attributes"].pop("index", None)
        return spec

    fake_api.keep = without_index
    assert publish(1).published.wait(5)
    (name,) = fake_api.slices
    # A change that is none of the spec's makes the publisher look again.
    fake_api.edit(name, lambda slice_: slice_["metadata"].update(labels={"seen": "yes"}))
    fake_api.remove()
    fake_api.until(lambda: len(fake_api.writes) == 2)
    assert [write.split()[0] for write in fake_api.writes] == ["POST", "POST"]
    notes = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert ["spec.devices[0].attributes.index.int"] in [note.get("fields") for note in notes]


def test_repairs_that_follow_on_each_other_get_slower_and_calm_forgives() -> None:
    now = [0.0]
    pace = Pace(0.1, 1.0, calm=30, clock=lambda: now[0])
    waits = [pace.stumble() for _ in range(6)]
    assert waits[0] <= 0.1 < waits[2] < waits[4] <= 1.0
    assert max(waits) <= 1.0
    now[0] = 60
    assert pace.stumble() <= 0.1
