"""Arguments become commands for the driver, and its answers become lines."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from testbed.cli import hardware as commands
from testbed.drivers import live_control
from testbed.errors import UsageError
from tests.fakes import cluster

ENTRY = {"seq": 7, "time": "2026-01-01T00:00:00.000Z", "event": "control", "verb": "unplug", "device": "gpu-0"}
STATE: dict[str, Any] = {
    "changes": {"gpu-0": {"absent": True}},
    "faults": [{"call": "prepare", "left": 2}],
    "crash": ["after-cdi"],
}


class Asked:
    def __init__(self) -> None:
        self.of: list[tuple[str | None, str | None]] = []
        self.words: list[str] = []
        self.changed = True

    def nodes_for(self, _kube: Any, _file: Any, node: str | None = None, device: str | None = None) -> list[str]:
        self.of.append((node, device))
        return ["node-1", "node-2"]

    def ask(self, _kube: Any, _file: Any, _node: str, words: list[str]) -> dict[str, Any]:
        self.words = words
        if words[0] == "journal":
            return {"entries": [ENTRY], "last": 7}
        return STATE if words == ["state"] else {"changed": self.changed, "lost": 2}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr(live_control, "nodes_for", made.nodes_for)
    monkeypatch.setattr(live_control, "run_control", made.ask)
    monkeypatch.setattr("testbed.bringup.attach", lambda _name: cluster.make())
    return made


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(commands.group, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("typed", "words", "device"),
    [
        ("unplug gpu-0", "unplug gpu-0", "gpu-0"),
        ("plug gpu-0", "plug gpu-0", "gpu-0"),
        ("set gpu-0 m=F9 --capacity a=1Gi --capacity b=1 --new", "set gpu-0 m=F9 --capacity a=1Gi --capacity b=1 --new", "gpu-0"),
        ("set gpu-0 index=-1", "set gpu-0 index=-1", "gpu-0"),
        ("taint gpu-0 k=v:NoSchedule", "taint gpu-0 k=v:NoSchedule", "gpu-0"),
        ("untaint gpu-0 k", "untaint gpu-0 k", "gpu-0"),
        ("health gpu-0 unhealthy --message ecc", "health gpu-0 unhealthy --message ecc", "gpu-0"),
        ("restore", "restore", None),
        ("fault prepare --times 3 --code UNAVAILABLE", "fault prepare --times 3 --code UNAVAILABLE", None),
        ("fault unprepare --hang --device gpu-0", "fault unprepare --hang --device gpu-0", "gpu-0"),
        ("fault prepare --times 0 --delay 2s --claim default/a", "fault prepare --times 0 --delay 2s --claim default/a", None),
        ("fault clear", "clear", None),
        ("crash after-cdi", "crash after-cdi", None),
        ("lose-cdi", "lose-cdi", None),
        ("release some-uid --force", "release some-uid --force", None),
    ],
)  # fmt: skip
def test_arguments_reach_the_driver(asked: Asked, typed: str, words: str, device: str | None) -> None:
    told = invoke(*typed.split(), "--node", "node-1")
    assert (asked.words, asked.of) == (words.split(), [("node-1", device)])
    assert told.splitlines()[0] == f"node-1: {words}: done, lost 2"


def test_a_change_without_effect_is_reported(asked: Asked) -> None:
    asked.changed = False
    assert "nothing changed: it is already so" in invoke("unplug", "gpu-0")


def test_fault_clear_takes_no_options(asked: Asked) -> None:
    result = CliRunner().invoke(commands.group, ["fault", "clear", "--times", "3"])
    assert "fault clear removes all faults and takes no --times" in result.output
    assert asked.words == []


def test_the_journal_is_printed_as_lines_or_json(asked: Asked) -> None:
    line = invoke("journal", "--since", "6", "--limit", "5").splitlines()[0]
    assert line == 'node-1 7 2026-01-01T00:00:00.000Z control verb="unplug" device="gpu-0"'
    assert asked.words == ["journal", "--since", "6", "--limit", "5"]
    found = json.loads(invoke("journal", "-o", "json"))
    assert found == [{"node": node, "entries": [ENTRY], "last": 7} for node in ("node-1", "node-2")]


@pytest.mark.usefixtures("asked")
def test_show_lists_changes_and_armed_faults() -> None:
    drawn = invoke("show", "--node", "node-1")
    assert 'node-1: gpu-0 is changed: {"absent": true}' in drawn
    assert 'node-1: armed: {"call": "prepare", "left": 2}' in drawn
    assert "node-1: will crash at after-cdi" in drawn
    assert "node-2:" not in drawn
    (place,) = json.loads(invoke("show", "--node", "node-1", "-o", "json"))
    assert place["live"] == STATE


def test_a_testbed_without_a_driver_has_no_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.bringup.attach", lambda name: SimpleNamespace(name=name, driver_file=None, kube=None))
    with pytest.raises(UsageError, match="testbed default has no driver of its own"):
        CliRunner().invoke(commands.group, ["unplug", "gpu-0"], catch_exceptions=False)
