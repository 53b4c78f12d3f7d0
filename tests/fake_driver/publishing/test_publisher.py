from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.api.backoff import Backoff
from fake_driver.devices.model import Device, Pool
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slices import Object, Owner, for_network, for_node
from tests.fake_driver.publishing.gpus_and_events import DRIVER, gpus, journal_entries

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi


@pytest.fixture
def publish(start_publisher: Callable[..., Publisher]) -> Callable[[int], Publisher]:
    """Start to publish this number of devices."""
    return lambda count: start_publisher(lambda owner: for_node(DRIVER, owner, gpus(count)))


def devices(fake_api: FakeApi) -> int:
    return sum(len(one["spec"].get("devices", [])) for one in fake_api.slices.values())


def test_slices_are_published_once_and_owned_by_the_node(
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


def test_slices_that_a_starting_kubelet_deleted_are_restored_immediately(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    assert publish(300).published.wait(5)
    fake_api.remove()
    fake_api.wait_until(lambda: devices(fake_api) == 300, seconds=2)


def test_an_edit_by_another_client_is_repaired(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    assert publish(2).published.wait(5)
    (name,) = fake_api.slices
    fake_api.edit(name, lambda slice_: slice_["spec"]["devices"].pop())
    fake_api.wait_until(lambda: devices(fake_api) == 2)


def test_stale_slices_are_removed(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    (old,) = for_node(DRIVER, Owner("worker", "x"), (Device("gpu-9", "gpu", {}, {}),))
    with fake_api.changed:
        fake_api.respond("POST", "/apis/resource.k8s.io/v1/resourceslices", {**old, "metadata": {"name": "old"}})
    assert publish(2).published.wait(5)
    assert list(fake_api.slices) == [f"00000-{DRIVER}-worker"]


def test_writes_are_retried_until_the_api_server_is_back(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    refused = threading.Event()

    def refuse(method: str, path: str) -> tuple[int, str] | None:
        if method == "POST" and not refused.is_set():
            refused.set()
            return 403, "the policy says no"
        return None

    fake_api.refuse = refuse
    assert publish(2).published.wait(5)
    assert refused.is_set()


def test_after_a_node_is_recreated_it_owns_the_slices_immediately(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    assert publish(130).published.wait(5)
    fake_api.nodes["worker"] = "another-uid"
    fake_api.writes.clear()
    fake_api.collect_garbage("another-uid")
    fake_api.wait_until(lambda: len(fake_api.slices) == 2)
    assert owners(fake_api) == {"another-uid"}
    assert [write.split()[0] for write in fake_api.writes] == ["POST", "POST"]


def test_after_the_device_class_is_recreated_it_owns_the_slices_of_the_network_immediately(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi
) -> None:
    fake_api.classes[DRIVER] = "uid-of-class"
    pool = Pool("far", tuple(gpus(1)))
    assert start_publisher(lambda owner: for_network(DRIVER, [pool], owner), node="").published.wait(5)
    fake_api.classes[DRIVER] = "another-uid"
    fake_api.collect_garbage("another-uid")
    fake_api.wait_until(lambda: len(fake_api.slices) == 1)
    assert owners(fake_api) == {"another-uid"}


def owners(fake_api: FakeApi) -> set[str]:
    return {one["metadata"]["ownerReferences"][0]["uid"] for one in fake_api.slices.values()}


def test_slices_are_repaired_after_the_store_was_restored_from_a_backup(
    publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    assert publish(130).published.wait(5)
    fake_api.restore({}, version=20)
    fake_api.wait_until(lambda: devices(fake_api) == 130)


def test_two_processes_publish_each_device_once(publish: Callable[[int], Publisher], fake_api: FakeApi) -> None:
    both = publish(200), publish(200)
    assert all(one.published.wait(5) for one in both)
    assert devices(fake_api) == 200


@pytest.mark.parametrize("change", [{"model": "other"}, {"index": 7}], ids=["more", "other"])
def test_a_change_of_one_device_is_one_write(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, change: dict[str, Any]
) -> None:
    found, asked = gpus(1000), SimpleQueue[Owner]()

    def slices(owner: Owner) -> list[Object]:
        asked.put(owner)
        return for_node(DRIVER, owner, found)

    publisher = start_publisher(slices)
    assert publisher.published.wait(5)
    assert len(fake_api.writes) == 8
    asked.get(timeout=5)
    found[500] = Device("gpu-500", "gpu", {"index": 500, **change}, {})
    for _ in range(2):  # when it asks for the second time, it is through with the first
        publisher.refresh()
        asked.get(timeout=5)
    assert fake_api.writes[8:] == [f"PUT 00006-{DRIVER}-worker"]
    assert {one["spec"]["pool"]["generation"] for one in fake_api.slices.values()} == {1}


def test_a_refresh_without_a_change_writes_nothing(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi
) -> None:
    asked: SimpleQueue[Owner] = SimpleQueue()

    def slices(owner: Owner) -> list[Object]:
        asked.put(owner)
        return for_node(DRIVER, owner, gpus(1))

    publisher = start_publisher(slices)
    assert publisher.published.wait(5)
    for _ in range(3):  # when it asks again, it is through with what came before
        asked.get(timeout=5)
        publisher.refresh()
    assert fake_api.writes == [f"POST 00000-{DRIVER}-worker"]


def test_invalid_slices_are_not_sent_and_a_later_change_is(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    found = [Device("gpu-0", "gpu", {f"a{index}": index for index in range(33)}, {})]
    publisher = start_publisher(lambda owner: for_node(DRIVER, owner, found))
    assert not publisher.published.wait(0.5)
    assert fake_api.writes == []
    (note,) = journal_entries(tmp_path, "slices-refused")
    assert "device gpu-0: it has 33 attributes and capacities, but may have 32" in note["message"]
    found[:] = gpus(1)
    publisher.refresh()
    assert publisher.published.wait(5)


def test_slices_of_the_network_and_of_a_node_do_not_affect_each_other(
    start_publisher: Callable[..., Publisher], publish: Callable[[int], Publisher], fake_api: FakeApi
) -> None:
    pool = Pool("far", tuple(gpus(3)))
    assert publish(2).published.wait(5)
    assert start_publisher(lambda owner: for_network(DRIVER, [pool], owner), node="").published.wait(5)
    assert sorted(len(one["spec"]["devices"]) for one in fake_api.slices.values()) == [2, 3]
    assert len(fake_api.writes) == 2
    assert "ownerReferences" not in fake_api.slices[f"pool-00000-{DRIVER}-far"]["metadata"]


def test_slices_of_the_network_are_owned_by_the_device_class(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi
) -> None:
    fake_api.classes[DRIVER] = "uid-of-class"
    pool = Pool("far", tuple(gpus(1)))
    assert start_publisher(lambda owner: for_network(DRIVER, [pool], owner), node="").published.wait(5)
    (slice_,) = fake_api.slices.values()
    assert slice_["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "name": DRIVER,
            "uid": "uid-of-class",
            "controller": True,
        }
    ]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_slices_are_published_in_an_older_api_version(
    publish: Callable[[int], Publisher], fake_api: FakeApi, version: str
) -> None:
    fake_api.versions = [version]
    assert publish(2).published.wait(5)
    (slice_,) = fake_api.slices.values()
    assert slice_["apiVersion"] == f"resource.k8s.io/{version}"
    assert ("basic" in slice_["spec"]["devices"][0]) is (version == "v1beta1")
    fake_api.edit(slice_["metadata"]["name"], lambda one: one["spec"]["devices"].pop())
    fake_api.wait_until(lambda: devices(fake_api) == 2)


def test_watches_that_end_immediately_are_retried_with_back_off(
    publish: Callable[..., Publisher],
    fake_api: FakeApi,
    backoffs: list[Backoff],
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    lists: list[int] = []

    def count(method: str, path: str) -> None:
        lists.extend([len(backoffs)] * (method == "GET" and path.endswith("/resourceslices")))

    fake_api.refuse = count
    fake_api.close()
    publish(1)
    wait_until(lambda: len(lists) >= 4)
    assert lists[:4] == [0, 1, 2, 3]
