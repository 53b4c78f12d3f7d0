"""Changes of live hardware in any order, and reading saved changes at start."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from fake_driver.control.live_hardware import Dependents, LiveHardware
from fake_driver.devices.health import HealthStore, initial_health
from fake_driver.devices.model import Device, RequestPolicy, Taint
from fake_driver.errors import ConfigurationError
from fake_driver.journal import Journal
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing.slices import Owner, for_node
from fake_driver.publishing.validation import find_problems
from fake_driver.strict_decoding import Section

NAMES = ("gpu-0", "gpu-1", "gpu-1-half-0")
BASE = (
    Device("gpu-0", "gpu", {"model": "a", "healthy": False}, {"memory": "8Gi"}, (Taint("old", "NoSchedule"),)),
    Device("gpu-1", "gpu", {"model": "a"}, {"memory": "8Gi"}),
    Device("gpu-1-half-0", "gpu", {"model": "a"}, {"memory": "4Gi"}, parent="gpu-1"),
)


class Running:
    """Live hardware whose saved changes are in a folder."""

    def __init__(self, folder: Path, base: tuple[Device, ...] = BASE) -> None:
        self.inventory, self.health_store, self.refreshed = Inventory("worker", base), HealthStore({}), 0
        dependents = Dependents(
            self.inventory, self.health_store, initial_health, self.refresh, Journal(folder / "journal.jsonl")
        )
        self.path = folder / "changes.json"
        self.hardware = LiveHardware("gpu.example", self.path, dependents)

    def refresh(self) -> None:
        self.refreshed += 1

    def change(self, verb: str, **request: Any) -> bool:
        return self.hardware.change(verb, Section("", request, []))

    def devices(self) -> dict[str, Device]:
        return {device.name: device for device in self.inventory.devices}

    def health(self) -> dict[str, str]:
        found = self.health_store.wait_for_change(0, 1)
        assert found
        return {name: health.status for (_, name), health in found[1].items()}


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


class Changes(RuleBasedStateMachine):
    """Makes any sequence of changes and restarts."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.running = Running(Path(self._folder.name))
        self.unplugged: set[str] = set()
        self.models: dict[str, str] = {}
        self.taints: dict[str, dict[tuple[str, str], str]] = {name: {} for name in NAMES}
        self.taints["gpu-0"]["old", "NoSchedule"] = ""
        self.states: dict[str, str] = {}

    def teardown(self) -> None:
        self._folder.cleanup()

    @initialize(target=keys)
    def some_keys(self) -> Any:
        return multiple("old", "new", "example.com/x")

    @rule(name=st.sampled_from(NAMES), out=st.booleans())
    def plug(self, name: str, out: bool) -> None:
        changed = self.running.change("unplug" if out else "plug", device=name)
        assert changed is ((name in self.unplugged) is not out)
        (self.unplugged.add if out else self.unplugged.discard)(name)

    @rule(name=st.sampled_from(NAMES), model=st.text("ab", min_size=1, max_size=2))
    def set_model(self, name: str, model: str) -> None:
        self.running.change("set", device=name, attributes={"model": model})
        self.models[name] = model

    @rule(
        name=st.sampled_from(NAMES[:2]),
        key=keys,
        effect=st.sampled_from(["NoSchedule", "NoExecute", "None"]),
        value=st.sampled_from(["", "v"]),
    )
    def taint(self, name: str, key: str, effect: str, value: str) -> None:
        self.running.change("taint", device=name, key=key, effect=effect, value=value)
        self.taints[name][key, effect] = value

    @rule(name=st.sampled_from(NAMES[:2]), key=keys)
    def untaint(self, name: str, key: str) -> None:
        before = self.taints[name]
        if any(known == key for known, _ in before):
            assert self.running.change("untaint", device=name, key=key)
        self.taints[name] = {both: value for both, value in before.items() if both[0] != key}

    @rule(name=st.sampled_from(NAMES[:1]), status=st.sampled_from(["healthy", "UNHEALTHY", "Unknown"]))
    def set_health(self, name: str, status: str) -> None:
        self.running.change("health", device=name, status=status, message="")
        self.states[name] = status.upper()

    @rule(
        name=st.sampled_from(NAMES), request=st.dictionaries(st.text(max_size=3), st.integers(), min_size=1, max_size=2)
    )
    def invalid_request(self, name: str, request: dict[str, int]) -> None:
        before = self.running.hardware.changes()
        with pytest.raises(ConfigurationError):
            self.running.change("set", device=name, **{f"z{key}": value for key, value in request.items()})
        assert self.running.hardware.changes() == before

    @rule()
    def restart(self) -> None:
        self.running = Running(Path(self._folder.name))

    @invariant()
    def the_changes_are_applied(self) -> None:
        devices = self.running.devices()
        gone = self.unplugged | ({"gpu-1-half-0"} if "gpu-1" in self.unplugged else set())
        assert devices.keys() == set(NAMES) - gone
        for name in devices.keys() - {"gpu-1-half-0"}:
            assert devices[name].attributes["model"] == self.models.get(name, "a")
            assert {(one.key, one.effect): one.value for one in devices[name].taints} == self.taints[name]
        assert self.running.health().keys() == devices.keys()
        if "gpu-0" in devices:
            assert self.running.health()["gpu-0"] == self.states.get("gpu-0", "UNHEALTHY")
        assert find_problems(for_node("gpu.example", Owner("worker", ""), self.running.inventory.devices)) == []


Changes.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestChanges = Changes.TestCase


def test_changes_of_devices_that_no_longer_exist_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "changes.json").write_text(json.dumps({"gpu-7": {"absent": True}, "gpu-1": {"absent": True}}))
    assert Running(tmp_path).hardware.changes() == {"gpu-1": {"absent": True}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"gpu-0": 1}',
        '{"gpu-0": {"health": {"status": "ill"}}}',
        '{"gpu-0": {"absent": "yes"}}',
        "[" * 9999,
        json.dumps({"gpu-0": {"attributes": {f"a{index}": 1 for index in range(40)}}}),
    ],
)
def test_a_damaged_file_is_set_aside_and_the_driver_starts(tmp_path: Path, content: str) -> None:
    (tmp_path / "changes.json").write_text(content)
    running = Running(tmp_path)
    assert len(running.devices()) == 3
    assert (tmp_path / "changes.damaged").read_text() == content
    assert "changes-set-aside" in (tmp_path / "journal.jsonl").read_text()
    assert running.change("unplug", device="gpu-0")


def test_a_change_that_cannot_be_saved_is_not_applied(running: Running) -> None:
    running.path.mkdir()
    with pytest.raises(OSError, match=r"changes\.json"):
        running.change("unplug", device="gpu-0")
    assert len(running.devices()) == 3
    assert running.refreshed == 0


def test_the_capacity_of_a_partition_cannot_be_changed(running: Running) -> None:
    with pytest.raises(ConfigurationError, match="it is a partition of gpu-1"):
        running.change("set", device="gpu-1-half-0", capacity={"memory": "1Gi"})


def test_a_change_that_a_request_policy_forbids_is_refused_and_blocks_no_later_change(tmp_path: Path) -> None:
    policy = RequestPolicy("4Gi", ("4Gi", "40Gi"))
    shared = Device("gpu-0", "gpu", {"model": "a"}, {"memory": "48Gi"}, shared=True, policies={"memory": policy})
    running = Running(tmp_path, (shared, BASE[1]))
    with pytest.raises(
        ConfigurationError, match="requestPolicy of its capacity memory allows more than the capacity of 1Gi"
    ):
        running.change("set", device="gpu-0", capacity={"memory": "1Gi"})
    assert running.hardware.changes() == {}
    assert running.change("set", device="gpu-0", capacity={"memory": "40Gi"})
    assert running.change("unplug", device="gpu-1")
