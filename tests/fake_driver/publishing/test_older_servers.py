"""API servers that drop or refuse fields, or serve older versions: what is published to them and what is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fake_driver.devices.model import CounterConsumption, Device, Taint
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slices import Object, for_node
from tests.fake_driver.publishing.gpus_and_events import DRIVER, gpus, journal_entries

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi


def test_dropped_fields_are_reported_and_not_sent_again(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    def without_index(spec: dict[str, Any]) -> dict[str, Any]:
        for device in spec["devices"]:
            device["attributes"].pop("index", None)
        return spec

    fake_api.keep = without_index
    assert start_publisher(lambda owner: for_node(DRIVER, owner, gpus(1))).published.wait(5)
    (name,) = fake_api.slices
    # A change that is none of the spec's makes the publisher look again.
    fake_api.edit(name, lambda slice_: slice_["metadata"].update(labels={"seen": "yes"}))
    fake_api.remove()
    fake_api.wait_until(lambda: len(fake_api.writes) == 2)
    assert [write.split()[0] for write in fake_api.writes] == ["POST", "POST"]
    assert [note["fields"] for note in journal_entries(tmp_path, "slice-fields-dropped")] == [
        ["spec.devices[0].attributes.index.int"]
    ]


def without_taints(spec: Object) -> Object:
    return {**spec, "devices": [{k: v for k, v in each.items() if k != "taints"} for each in spec["devices"]]}


def test_a_new_process_finds_dropped_fields_without_a_write(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    fake_api.keep = without_taints
    tainted = [Device(f"gpu-{index}", "gpu", {}, {}, taints=(Taint("a", "None"),)) for index in range(100)]
    for _ in range(2):
        publisher = start_publisher(lambda owner: for_node(DRIVER, owner, tainted))
        assert publisher.published.wait(5)
    assert len(journal_entries(tmp_path, "slice-write")) == 2
    told = journal_entries(tmp_path, "slice-fields-dropped")
    assert [len({note["slice"] for note in some}) for some in (told[:2], told[2:])] == [2, 2]
    assert {gate for note in told for gate in note["gates"]} == {"DRADeviceTaints"}
    assert {one["spec"]["pool"]["generation"] for one in fake_api.slices.values()} == {1}


def test_fields_are_sent_again_when_the_server_keeps_them(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi
) -> None:
    fake_api.keep = without_taints
    publisher = start_publisher(
        lambda owner: for_node(DRIVER, owner, [Device("gpu-0", "gpu", {}, {}, taints=(Taint("a", "None"),))])
    )
    assert publisher.published.wait(5)
    fake_api.keep = lambda spec: spec
    fake_api.end_watches()
    fake_api.wait_until(lambda: "taints" in next(iter(fake_api.slices.values()))["spec"]["devices"][0])
    assert len(fake_api.writes) == 2


def test_list_attributes_are_left_out_if_the_server_refuses_them(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    def refuse(method: str, path: str) -> tuple[int, str] | None:
        return (422, "must specify one of: `int`") if method in {"POST", "PUT"} and next(tries, None) else None

    tries = iter([True])
    fake_api.refuse = refuse
    publisher = start_publisher(
        lambda owner: for_node(DRIVER, owner, [Device("gpu-0", "gpu", {"l": (1,), "i": 1}, {})])
    )
    assert publisher.published.wait(5)
    (slice_,) = fake_api.slices.values()
    assert slice_["spec"]["devices"][0]["attributes"] == {"i": {"int": 1}}
    assert [note["fields"] for note in journal_entries(tmp_path, "slice-fields-dropped")] == [
        ["spec.devices[0].attributes.l.ints[0]"]
    ]


def in_parts(count: int = 1) -> list[Device]:
    found: list[Device] = []
    for name in (f"gpu-{index}" for index in range(count)):
        takes = {name: "7", **{f"{name}-3g-{index}": "3" for index in range(2)}}
        found += [
            Device(device, "gpu", {}, {}, consumes_counters=(CounterConsumption(name, {"c": taken}, {"c": "7"}),))
            for device, taken in takes.items()
        ]
    return found


def without_counters(spec: Object) -> Object:
    spec.pop("sharedCounters", None)
    for device in spec.get("devices", ()):
        device.pop("consumesCounters", None)
    return spec


def published(fake_api: FakeApi) -> list[str]:
    return [device["name"] for one in fake_api.slices.values() for device in one["spec"].get("devices", [])]


def test_if_the_server_drops_counters_a_device_and_its_partitions_are_never_both_published(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    fake_api.keep = without_counters
    for _ in range(2):
        assert start_publisher(lambda owner: for_node(DRIVER, owner, in_parts(2))).published.wait(5)
    assert published(fake_api) == ["gpu-0", "gpu-1"]
    assert [write.split()[0] for write in fake_api.writes] == ["POST", "POST"]
    told = journal_entries(tmp_path, "devices-withheld")
    parts = ["gpu-0-3g-0", "gpu-0-3g-1", "gpu-1-3g-0", "gpu-1-3g-1"]
    assert [(note["count"], note["devices"], note["gates"]) for note in told] == [
        (4, parts, ["DRAPartitionableDevices"])
    ] * 2
    assert {gate for note in journal_entries(tmp_path, "slice-fields-dropped") for gate in note["gates"]} == {
        "DRAPartitionableDevices"
    }


def test_partitions_are_published_when_the_server_keeps_counters_later(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    fake_api.keep = without_counters
    assert start_publisher(lambda owner: for_node(DRIVER, owner, in_parts())).published.wait(5)
    fake_api.keep = lambda spec: spec
    fake_api.end_watches()
    fake_api.wait_until(lambda: len(published(fake_api)) == 3)
    assert [note["count"] for note in journal_entries(tmp_path, "devices-withheld")][:1] == [2]


def test_a_server_may_drop_counters_and_refuse_lists(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi, tmp_path: Path
) -> None:
    fake_api.keep = without_counters
    tries = iter([True])
    fake_api.refuse = lambda method, _path: (422, "one of") if method == "POST" and next(tries, None) else None
    listed = [
        Device(each.name, "gpu", {"l": (1,)}, {}, consumes_counters=each.consumes_counters) for each in in_parts()
    ]
    assert start_publisher(lambda owner: for_node(DRIVER, owner, listed)).published.wait(5)
    assert published(fake_api) == ["gpu-0"]
    assert {gate for note in journal_entries(tmp_path, "slice-fields-dropped") for gate in note["gates"]} == {
        "DRAListTypeAttributes",
        "DRAPartitionableDevices",
    }


def test_a_server_that_keeps_counters_gets_one_dry_run_and_no_extra_write(
    start_publisher: Callable[..., Publisher], fake_api: FakeApi
) -> None:
    for _ in range(2):
        assert start_publisher(lambda owner: for_node(DRIVER, owner, in_parts())).published.wait(5)
    assert len(published(fake_api)) == 3
    assert (len(fake_api.writes), len(fake_api.dry_runs)) == (2, 1)
