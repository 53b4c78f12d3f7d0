"""Changes of hardware in any order: the rules that always hold, and what is found in the data folder at a start."""

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
    """The hardware of a driver whose files are in a folder."""

    def __init__(self, folder: Path, base: tuple[Device, ...] = BASE) -> None:
        self.inventory, self.health_store, self.refreshed = Inventory("worker", base), HealthStore({}), 0
        dependents = Dependents(
            self.inventory, self.health_store, initial_health, self.refresh, Journal(folder / "journal.jsonl")
        )
        self.path = folder / "changes.json"
        self.hardware = LiveHardware("gpu.example", self.path, dependents)

    def refresh(self) -> None:
        self.refreshed += 1

    def ask(self, verb: str, **asked: Any) -> bool:
        return self.hardware.change(verb, Section("", asked, []))

    def seen(self) -> dict[str, Device]:
        return {device.name: device for device in self.inventory.devices}

    def health(self) -> dict[str, str]:
        found = self.health_store.wait_for_change(0, 1)
        assert found
        return {name: health.status for (_, name), health in found[1].items()}


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


class Changes(RuleBasedStateMachine):
    """Any sequence of changes and restarts."""

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
        did = self.running.ask("unplug" if out else "plug", device=name)
        assert did is ((name in self.unplugged) is not out)
        (self.unplugged.add if out else self.unplugged.discard)(name)

    @rule(name=st.sampled_from(NAMES), model=st.text("ab", min_size=1, max_size=2))
    def set_model(self, name: str, model: str) -> None:
        self.running.ask("set", device=name, attributes={"model": model})
        self.models[name] = model

    @rule(
        name=st.sampled_from(NAMES[:2]),
        key=keys,
        effect=st.sampled_from(["NoSchedule", "NoExecute", "None"]),
        value=st.sampled_from(["", "v"]),
    )
    def taint(self, name: str, key: str, effect: str, value: str) -> None:
        self.running.ask("taint", device=name, key=key, effect=effect, value=value)
        self.taints[name][key, effect] = value

    @rule(name=st.sampled_from(NAMES[:2]), key=keys)
    def untaint(self, name: str, key: str) -> None:
        mine = self.taints[name]
        if any(one == key for one, _ in mine):
            assert self.running.ask("untaint", device=name, key=key)
        self.taints[name] = {both: value for both, value in mine.items() if both[0] != key}

    @rule(name=st.sampled_from(NAMES[:1]), status=st.sampled_from(["healthy", "UNHEALTHY", "Unknown"]))
    def say_health(self, name: str, status: str) -> None:
        self.running.ask("health", device=name, status=status, message="")
        self.states[name] = status.upper()

    @rule(
        name=st.sampled_from(NAMES), asked=st.dictionaries(st.text(max_size=3), st.integers(), min_size=1, max_size=2)
    )
    def nonsense(self, name: str, asked: dict[str, int]) -> None:
        before = self.running.hardware.changes()
        with pytest.raises(ConfigurationError):
            self.running.ask("set", device=name, **{f"z{key}": value for key, value in asked.items()})
        assert self.running.hardware.changes() == before

    @rule()
    def restart(self) -> None:
        self.running = Running(Path(self._folder.name))

    @invariant()
    def it_is_as_the_changes_say(self) -> None:
        seen = self.running.seen()
        gone = self.unplugged | ({"gpu-1-half-0"} if "gpu-1" in self.unplugged else set())
        assert seen.keys() == set(NAMES) - gone
        for name in seen.keys() - {"gpu-1-half-0"}:
            assert seen[name].attributes["model"] == self.models.get(name, "a")
            assert {(one.key, one.effect): one.value for one in seen[name].taints} == self.taints[name]
        assert self.running.health().keys() == seen.keys()
        if "gpu-0" in seen:
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
    assert len(running.seen()) == 3
    assert (tmp_path / "changes.damaged").read_text() == content
    assert "changes-set-aside" in (tmp_path / "journal.jsonl").read_text()
    assert running.ask("unplug", device="gpu-0")


def test_a_change_that_cannot_be_saved_is_not_applied(running: Running) -> None:
    running.path.mkdir()
    with pytest.raises(OSError, match=r"changes\.json"):
        running.ask("unplug", device="gpu-0")
    assert len(running.seen()) == 3
    assert running.refreshed == 0


def test_the_capacity_of_a_partition_cannot_be_changed(running: Running) -> None:
    with pytest.raises(ConfigurationError, match="it is a partition of gpu-1"):
        running.ask("set", device="gpu-1-half-0", capacity={"memory": "1Gi"})


def test_a_change_that_a_request_policy_forbids_is_refused_and_blocks_no_later_change(tmp_path: Path) -> None:
    policy = RequestPolicy("4Gi", ("4Gi", "40Gi"))
    shared = Device("gpu-0", "gpu", {"model": "a"}, {"memory": "48Gi"}, shared=True, policies={"memory": policy})
    running = Running(tmp_path, (shared, BASE[1]))
    with pytest.raises(
        ConfigurationError, match="requestPolicy of its capacity memory allows more than the capacity of 1Gi"
    ):
        running.ask("set", device="gpu-0", capacity={"memory": "1Gi"})
    assert running.hardware.changes() == {}
    assert running.ask("set", device="gpu-0", capacity={"memory": "40Gi"})
    assert running.ask("unplug", device="gpu-1")
