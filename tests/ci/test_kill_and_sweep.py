"""ci/kill_and_sweep.py with a dra-testbed and a docker that are shell scripts."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

from ci.check_workflows import ROOT
from tests.ci.conftest import Host, read

TESTBED = """
echo "$1" >>{notes}/calls
case "$1" in up) {up};; status) echo '{{"phase": "{phase}"}}';; sweep) {sweep};; esac"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "ci")
    return importlib.import_module("kill_and_sweep")


@pytest.fixture
def provider(script: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kind, with one node of another cluster."""
    host.has("docker", f'[ "$1" != ps ] || cat {host.notes}/nodes')
    (host.notes / "nodes").write_text("node 1 theirs running\n")
    monkeypatch.setattr(script, "TESTBED", [str(host.programs / "dra-testbed")])
    monkeypatch.setattr(script.host_snapshot, "marked", lambda: set(read(host.notes / "marked").split()))
    return script.PROVIDERS["kind"]


@pytest.mark.parametrize(
    ("up", "phase", "sweep", "result"),
    [
        ("exec sleep 60", "making", ":", "passed"),
        ("exec sleep 60", "making", "exit 3", "failed"),
        ("exec sleep 60", "making", "echo process >{notes}/marked", "failed"),
        ("exec sleep 60", "making", "echo 'node 1 theirs exited' >{notes}/nodes", "failed"),
        ("exit 3", "making", ":", "failed"),
        (":", "ready", ":", "too late"),
    ],
)
def test_a_round_passes_if_the_sweep_leaves_nothing_and_keeps_other_clusters(
    script: ModuleType, host: Host, provider: Any, up: str, phase: str, sweep: str, result: str
) -> None:
    host.has("dra-testbed", TESTBED.format(notes=host.notes, up=up, phase=phase, sweep=sweep.format(notes=host.notes)))

    assert script.one_round(provider, 0.3) == result
    assert ("down" in read(host.notes / "calls")) is (result == "too late")
