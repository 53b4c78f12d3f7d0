"""Each of these drivers does not follow its hardware, in its own way; the right one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.devices.model import Taint
from fake_driver.mutants import selection
from fake_driver.roles.node_driver import NodeProcess, read_parts
from fake_driver.settings import Settings
from fake_driver.strict_decoding import Section

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("", {"gpu-1"}),
        ("publish-once", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}),
        ("unplugged-devices-stay-published", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}),
        ("taints-are-not-published", {"gpu-1"}),
    ],
)
def test_slices_after_a_change(settings: Settings, word: str, names: set[str]) -> None:
    use = selection.apply([word] if word else [], read_parts(settings))
    use.published_devices(use.inventory)
    (kept,) = (each for each in use.inventory.devices if each.name == "gpu-1")
    use.inventory.set_devices((replace(kept, taints=(Taint("k", "NoSchedule"),)),))
    found = use.published_devices(use.inventory)
    assert {device.name for device in found} == names
    assert any(device.taints for device in found) is (word in ("", "unplugged-devices-stay-published"))


@pytest.mark.parametrize(("word", "generations"), [("", {1, 2}), ("publish-with-wrong-generation", {1})])
def test_publish_with_wrong_generation(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, word: str, generations: set[int]
) -> None:
    seen: set[int] = set()

    def published() -> list[str]:
        seen.update(each["spec"]["pool"]["generation"] for each in fake_api.slices.values())
        return sorted(device["name"] for each in fake_api.slices.values() for device in each["spec"]["devices"])

    def sliced(right: Any) -> Any:
        one_each = selection.apply(["publish-with-wrong-generation"], right)
        return one_each if word else replace(one_each, plan=right.plan)

    process = start_driver(settings, sliced)
    fake_api.wait_until(lambda: len(published()) == 4)
    process._hardware.change("unplug", Section("", {"device": "gpu-0"}, []))
    fake_api.wait_until(lambda: published() == ["gpu-1", "gpu-2", "gpu-3"])
    assert seen == generations


@pytest.mark.parametrize(("word", "writes"), [("", []), ("publishes-nothing-at-first", ["PUT", "PUT"])])
def test_publishes_nothing_at_first(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, word: str, writes: list[str]
) -> None:
    def begin() -> None:
        process = start_driver(settings, lambda right: selection.apply([word] if word else [], right))
        fake_api.wait_until(process._publisher.published.is_set)
        fake_api.wait_until(lambda: [len(each["spec"]["devices"]) for each in fake_api.slices.values()] == [4])

    begin()
    before = len(fake_api.writes)
    begin()
    assert [each.partition(" ")[0] for each in fake_api.writes[before:]] == writes
