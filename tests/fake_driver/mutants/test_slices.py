from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.devices.model import Device, Taint
from fake_driver.mutants import selection
from fake_driver.preparing.inventory import Inventory
from fake_driver.roles.node_driver import NodeProcess, Parts
from fake_driver.settings import Settings
from fake_driver.strict_decoding import Section

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant

Start = Callable[..., NodeProcess]


def test_slices_missing(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("slices-missing")
    driver.register()
    assert driver.process.not_ready_reasons() == ["the slices are not published"]
    assert driver.process.not_alive_reasons() == []
    assert fake_api.writes == []


def specs(fake_api: FakeApi, count: int) -> list[Any]:
    """Wait for that many slices, and return their specs."""
    fake_api.wait_until(lambda: len(fake_api.slices) == count)
    return [slice_["spec"] for slice_ in fake_api.slices.values()]


def test_count_one_slice_too_many(mutant: StartMutant, fake_api: FakeApi) -> None:
    mutant("count-one-slice-too-many")
    (spec,) = specs(fake_api, 1)
    assert spec["pool"]["resourceSliceCount"] == 2


def test_publish_devices_twice(mutant: StartMutant, fake_api: FakeApi) -> None:
    mutant("publish-devices-twice")
    one, other = specs(fake_api, 2)
    assert one["pool"]["resourceSliceCount"] == other["pool"]["resourceSliceCount"] == 2
    assert one["devices"] == other["devices"]


@pytest.mark.parametrize(("name", "index"), [("", 0), ("publish-attributes-of-another-device", 1)])
def test_publish_attributes_of_another_device(mutant: StartMutant, fake_api: FakeApi, name: str, index: int) -> None:
    mutant(name)
    (spec,) = specs(fake_api, 1)
    first = spec["devices"][0]
    assert (first["name"], first["attributes"]["index"]["int"]) == ("gpu-0", index)


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("", {"gpu-1"}),
        ("publish-once", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}),
        ("unplugged-devices-stay-published", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}),
        ("taints-are-not-published", {"gpu-1"}),
    ],
)
def test_devices_after_a_change(parts_with: PartsWith, name: str, devices: set[str]) -> None:
    parts = parts_with(name)
    parts.published_devices(parts.inventory)
    (kept,) = (each for each in parts.inventory.devices if each.name == "gpu-1")
    parts.inventory.set_devices((replace(kept, taints=(Taint("k", "NoSchedule"),)),))
    published = parts.published_devices(parts.inventory)
    assert {device.name for device in published} == devices
    assert any(device.taints for device in published) is (name in ("", "unplugged-devices-stay-published"))


@pytest.mark.parametrize(("name", "expected"), [("", {1, 2}), ("publish-with-wrong-generation", {1})])
def test_publish_with_wrong_generation(
    start_driver: Start, settings: Settings, fake_api: FakeApi, name: str, expected: set[int]
) -> None:
    generations: set[int] = set()

    def published() -> list[str]:
        generations.update(each["spec"]["pool"]["generation"] for each in fake_api.slices.values())
        return sorted(device["name"] for each in fake_api.slices.values() for device in each["spec"]["devices"])

    def with_one_slice_per_device(correct: Parts) -> Parts:
        wrong = selection.apply(["publish-with-wrong-generation"], correct)
        return wrong if name else replace(wrong, plan=correct.plan)

    process = start_driver(settings, with_one_slice_per_device)
    fake_api.wait_until(lambda: len(published()) == 4)
    process._hardware.change("unplug", Section("", {"device": "gpu-0"}, []))
    fake_api.wait_until(lambda: published() == ["gpu-1", "gpu-2", "gpu-3"])
    assert generations == expected


@pytest.mark.parametrize(("name", "is_wrong"), [("", False), ("publish-a-generation-too-low", True)])
def test_publish_a_generation_too_low(
    start_driver: Start, settings: Settings, fake_api: FakeApi, name: str, is_wrong: bool
) -> None:
    file = Path(settings.hardware)
    file.write_text(file.read_text().replace("count: 4", "count: 100"))
    taints: list[Taint] = []

    def published(inventory: Inventory) -> list[Device]:
        return [replace(device, taints=tuple(taints)) for device in inventory.devices]

    def with_taints(correct: Parts) -> Parts:
        return selection.apply([name] if name else [], replace(correct, published_devices=published))

    publisher = start_driver(settings, with_taints)._publisher
    fake_api.wait_until(publisher.published.is_set)
    taints.append(Taint("a", "None"))  # a slice with taints has at most 64 devices
    publisher.refresh()
    generations = {spec["pool"]["generation"] for spec in specs(fake_api, 2)}
    assert (generations == {1}) is is_wrong


@pytest.mark.parametrize(("name", "is_wrong"), [("", False), ("never-heal-slices", True)])
def test_never_heal_slices(mutant: StartMutant, fake_api: FakeApi, name: str, is_wrong: bool) -> None:
    publisher = mutant(name).process._publisher
    fake_api.wait_until(publisher.published.is_set)
    (slice_name,) = fake_api.slices
    writes = len(fake_api.writes)
    fake_api.edit(slice_name, lambda slice_: slice_["spec"]["devices"].pop())
    fake_api.wait_until(lambda: len(fake_api.slices[slice_name]["spec"]["devices"]) == (3 if is_wrong else 4))
    fake_api.remove(slice_name)
    fake_api.wait_until(lambda: (slice_name in fake_api.slices) is not is_wrong)
    assert (len(fake_api.writes) == writes) is is_wrong


@pytest.mark.parametrize(("name", "is_restored"), [("", True), ("deleted-slices-stay-away", False)])
def test_deleted_slices_stay_away(parts_with: PartsWith, name: str, is_restored: bool) -> None:
    parts, wanted = parts_with(name), [a_slice("a", "")]
    assert parts.plan(wanted, [], {}).create
    assert not parts.plan(wanted, [a_slice("a", "1")], {})
    assert bool(parts.plan(wanted, [], {}).create) is is_restored


@pytest.mark.parametrize(("name", "deleted"), [("", []), ("publishes-from-scratch", ["1"])])
def test_publishes_from_scratch(parts_with: PartsWith, name: str, deleted: list[str]) -> None:
    parts, wanted = parts_with(name), [a_slice("a", "")]
    first = parts.plan(wanted, [a_slice("a", "1")], {})
    assert [each["metadata"]["uid"] for each in first.delete] == deleted
    assert bool(first.create) is bool(name)
    assert not parts.plan(wanted, [a_slice("a", "2")], {})


@pytest.mark.parametrize(("name", "writes"), [("", []), ("publishes-nothing-at-first", ["PUT", "PUT"])])
def test_publishes_nothing_at_first(
    start_driver: Start, settings: Settings, fake_api: FakeApi, name: str, writes: list[str]
) -> None:
    def begin() -> None:
        process = start_driver(settings, lambda correct: selection.apply([name] if name else [], correct))
        fake_api.wait_until(process._publisher.published.is_set)
        fake_api.wait_until(lambda: [len(each["spec"]["devices"]) for each in fake_api.slices.values()] == [4])

    begin()
    before = len(fake_api.writes)
    begin()
    assert [each.partition(" ")[0] for each in fake_api.writes[before:]] == writes


@pytest.mark.parametrize(("name", "again"), [("", True), ("publishes-only-the-first-time", False)])
def test_publishes_only_the_first_time(parts_with: PartsWith, name: str, again: bool) -> None:
    first, wanted = parts_with(name), [a_slice("a", "")]
    assert first.plan(wanted, [], {}).create
    assert not first.plan(wanted, [a_slice("a", "1")], {})
    assert first.plan(wanted, [], {}).create
    assert bool(parts_with(name).plan(wanted, [], {}).create) is again


@pytest.mark.parametrize(("name", "is_deleted"), [("", False), ("deletes-slices-after-a-restart", True)])
def test_deletes_slices_after_a_restart(parts_with: PartsWith, name: str, is_deleted: bool) -> None:
    first, wanted = parts_with(name), [a_slice("a", "")]
    assert not first.plan(wanted, [a_slice("a", "1")], {})
    again = parts_with(name).plan(wanted, [a_slice("a", "1")], {})
    assert [each["metadata"]["uid"] for each in again.delete] == (["1"] if is_deleted else [])


@pytest.mark.parametrize(("name", "second"), [("", ["a", "b", "c"]), ("publishes-in-another-order", ["b", "c", "a"])])
def test_publishes_in_another_order(parts_with: PartsWith, name: str, second: list[str]) -> None:
    wanted = a_slice("a", "")
    wanted["spec"]["devices"] = [{"name": each} for each in "abc"]
    for order in (["a", "b", "c"], second):
        (found,) = parts_with(name).alter_slices([wanted])
        assert [each["name"] for each in found["spec"]["devices"]] == order


def a_slice(name: str, uid: str) -> Any:
    pool = {"name": "worker", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": name, "uid": uid}, "spec": {"pool": pool, "nodeName": "worker", "devices": []}}
