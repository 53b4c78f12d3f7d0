from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.devices.model import Device, Taint
from fake_driver.mutants import MUTANTS, selection
from fake_driver.preparing.inventory import Inventory
from fake_driver.roles.node_driver import NodeProcess, Parts, read_parts
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

Start = Callable[..., NodeProcess]
TWO = "2e000000-0000-4000-8000-000000000001"


class Node:
    """A driver with a fault, its kubelet, and what it leaves on the node."""

    def __init__(self, settings: Settings, kubelet: Kubelet, process: NodeProcess) -> None:
        self.kubelet, self.cdi, self.process = kubelet, Path(settings.cdi), process
        self._socket = settings.data / "dra.sock"

    def prepare(self, *claims: Any) -> Any:
        answer = self.kubelet.prepare(self._socket, *claims)
        return answer[claims[0]["uid"]] if len(claims) == 1 else [answer[claim["uid"]] for claim in claims]

    def unprepare(self, claim: Any) -> str:
        return str(self.kubelet.unprepare(self._socket, claim)[claim["uid"]].error)

    def files(self) -> int:
        return len(list(self.cdi.glob("*.json")))

    def defined(self) -> set[str]:
        """The CDI ids that the files define."""
        found = [json.loads(path.read_text()) for path in self.cdi.glob("*.json")]
        return {f"{spec['kind']}={device['name']}" for spec in found for device in spec["devices"]}

    def env(self) -> str:
        return "".join(path.read_text() for path in self.cdi.glob("*.json"))


@pytest.fixture
def node(start_driver: Start, settings: Settings, kubelet: Kubelet) -> Callable[[str], Node]:
    def make(word: str) -> Node:
        return Node(settings, kubelet, start_driver(settings, partial(selection.apply, [word] if word else [])))

    return make


Made = Callable[[str], Node]


def both(word: str) -> pytest.MarkDecorator:
    """Once right, once wrong."""
    return pytest.mark.parametrize(("word", "wrong"), [("", False), (word, True)])


@both("answer-for-the-wrong-claim")
def test_answer_for_the_wrong_claim(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    (before,) = driver.prepare(fake_api.claim("one")).devices
    (after,) = driver.prepare(fake_api.claim("two", devices=("gpu-1",))).devices
    assert (before.device_name == after.device_name) is wrong


@both("answer-without-request-names")
def test_answer_without_request_names(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    (device,) = node(word).prepare(fake_api.claim()).devices
    assert (not device.request_names) is wrong


@both("wrong-cdi-names")
def test_wrong_cdi_names(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    (device,) = driver.prepare(fake_api.claim()).devices
    assert (set(device.cdi_device_ids) <= driver.defined()) is not wrong


@both("one-cdi-file-for-all")
def test_one_cdi_file_for_all(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    driver.prepare(fake_api.claim("one"))
    driver.prepare(fake_api.claim("two", devices=("gpu-1",)))
    assert driver.files() == (1 if wrong else 2)


@both("one-claim-at-a-time")
def test_one_claim_at_a_time(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    driver.prepare(fake_api.claim("one"))
    assert bool(driver.prepare(fake_api.claim("two", devices=("gpu-1",))).error) is wrong


@both("refuse-alternatives")
def test_refuse_alternatives(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    claim = fake_api.claim()
    fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"][0]["request"] = "gpu/big"
    assert bool(node(word).prepare(claim).error) is wrong


@both("prepare-twice-differently")
def test_prepare_twice_differently(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver, claim = node(word), fake_api.claim(devices=("gpu-0", "gpu-1"))
    assert [len(driver.prepare(claim).devices) for _ in range(2)] == [2, 1 if wrong else 2]


@both("forget-the-checkpoint")
def test_forget_the_checkpoint(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    driver.prepare(fake_api.claim("one"))
    assert bool(driver.prepare(fake_api.claim("two")).error) is not wrong


@both("unprepare-by-name")
def test_unprepare_by_name(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver, old = node(word), fake_api.claim()
    driver.prepare(fake_api.claim(uid=TWO))
    assert driver.unprepare(old) == ""
    assert driver.files() == (0 if wrong else 1)


@both("one-bad-claim-fails-all")
def test_one_bad_claim_fails_all(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    good, bad = node(word).prepare(fake_api.claim("good"), fake_api.claim("bad", devices=("gpu-99",)))
    assert bad.error
    assert bool(good.error) is bool(not good.devices) is wrong


@both("take-devices-of-other-drivers")
def test_take_devices_of_other_drivers(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"][1]["driver"] = "other.example"
    assert len(node(word).prepare(claim).devices) == (2 if wrong else 1)


@both("no-env-for-administrators")
def test_no_env_for_administrators(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    driver.prepare(fake_api.claim(adminAccess=True))
    assert ("GPU_DEVICE" not in driver.env()) is wrong


@both("refuse-administrators")
def test_refuse_administrators(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    driver = node(word)
    assert bool(driver.prepare(fake_api.claim("admin", adminAccess=True)).error) is wrong
    assert not driver.prepare(fake_api.claim("user", devices=("gpu-1",))).error


@both("status-says-not-ready")
def test_status_says_not_ready(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    node(word).prepare(fake_api.claim())
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (condition,) = fake_api.status()[0]["conditions"]
    assert condition["status"] == str(not wrong)


@both("status-replaces-all")
def test_status_replaces_all(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    status = fake_api.claims["default", "one"]["status"]
    status["allocation"]["devices"]["results"][1]["driver"] = "other.example"
    theirs = {"driver": "other.example", "pool": "worker", "device": "gpu-1", "data": {"speed": "100G"}}
    status["devices"] = [theirs]
    node(word).prepare(claim)
    fake_api.wait_until(lambda: "gpu-0" in {entry["device"] for entry in fake_api.status()})
    assert (theirs not in fake_api.status()) is wrong
    fake_api.requested.discard(("resourceclaims/status", "update"))  # its manifests give it more rights


@both("publish-attributes-of-another-device")
def test_publish_attributes_of_another_device(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    node(word)
    fake_api.wait_until(lambda: bool(fake_api.slices))
    (slice_,) = fake_api.slices.values()
    first = slice_["spec"]["devices"][0]
    assert (first["name"], first["attributes"]["index"]["int"]) == ("gpu-0", 1 if wrong else 0)


@pytest.mark.parametrize(("name", "registers"), [("node-1", True), ("node-2", False), ("worker", False)])
def test_register_on_odd_nodes(settings: Settings, name: str, registers: bool) -> None:
    right = read_parts(replace(settings, node=name))
    assert selection.apply(["register-on-odd-nodes"], right).registers is registers


@both("never-heal-slices")
def test_never_heal_slices(node: Made, fake_api: FakeApi, word: str, wrong: bool) -> None:
    publisher = node(word).process._publisher
    fake_api.wait_until(publisher.published.is_set)
    (name,) = fake_api.slices
    writes = len(fake_api.writes)
    fake_api.edit(name, lambda slice_: slice_["spec"]["devices"].pop())
    fake_api.wait_until(lambda: len(fake_api.slices[name]["spec"]["devices"]) == (3 if wrong else 4))
    fake_api.remove(name)
    fake_api.wait_until(lambda: (name in fake_api.slices) is not wrong)
    assert (len(fake_api.writes) == writes) is wrong


@both("publish-a-generation-too-low")
def test_publish_a_generation_too_low(
    start_driver: Start, settings: Settings, fake_api: FakeApi, word: str, wrong: bool
) -> None:
    file = Path(settings.hardware)
    file.write_text(file.read_text().replace("count: 4", "count: 100"))
    taints: list[Taint] = []

    def published(inventory: Inventory) -> list[Device]:
        return [replace(device, taints=tuple(taints)) for device in inventory.devices]

    def growing(right: Parts) -> Parts:
        return selection.apply([word] if word else [], replace(right, published_devices=published))

    publisher = start_driver(settings, growing)._publisher
    fake_api.wait_until(publisher.published.is_set)
    taints.append(Taint("a", "None"))  # beside which a slice may have no more than 64 devices
    publisher.refresh()
    fake_api.wait_until(lambda: len(fake_api.slices) == 2)
    generations = {slice_["spec"]["pool"]["generation"] for slice_ in fake_api.slices.values()}
    assert (generations == {1}) is wrong


def test_each_mutant_can_be_selected_and_has_a_description() -> None:
    assert MUTANTS.items() <= selection.ALL_MUTANTS.items()
    assert all(mutant.__doc__ for mutant in MUTANTS.values())
