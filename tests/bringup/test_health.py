"""The status of a testbed, also without its container engine or API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed import process
from testbed.bringup import health, state, testbeds
from testbed.bringup.state import Phase, Record
from testbed.cli.main import run
from testbed.errors import CommandFailed

MINE = state.this_process()


class Away:
    """A provider whose container engine does not run."""

    def attach(self, *_: Any) -> Any:
        raise CommandFailed(["docker", "ps"], "exit 1", "cannot connect to the daemon")


def _record(name: str) -> Record:
    return Record(name, "kind", Phase.READY, MINE.pid, MINE.started, "", ephemeral=False, config={})


def test_the_status_without_a_container_engine_has_the_engines_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state.write(_record("one"))
    state.write(_record("two"))
    for module in (health, testbeds):
        monkeypatch.setattr(module, "provider", lambda _name: Away())
    assert run(["status"]) == 0
    assert capsys.readouterr().out.count("cannot connect to the daemon") == 2
    assert health.status_of("one").phase == "broken"


def test_the_status_of_a_killed_runs_testbed_names_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    left = replace(_record("left"), pid_space=process.pid_namespace(), ephemeral=True, owner_started=MINE.started + 1)
    state.write(left)
    monkeypatch.setattr(health, "_components", lambda _record: [])
    found = health.status_of("left")
    assert found.phase == "broken"
    assert any("sweep removes it" in problem for problem in found.problems)


@pytest.mark.parametrize("words", [["status"], ["status", "-o", "json"]])
def test_a_damaged_record_does_not_hide_the_status_of_the_others(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("brk", "good"):
        state.write(_record(name))
    (state.folder_of("brk") / "testbed.json").write_text("{")
    for module in (health, testbeds):
        monkeypatch.setattr(module, "provider", lambda _name: Away())
    assert run(words) == 3
    said = capsys.readouterr()
    assert "good" in said.out
    assert "brk/testbed.json" in said.err
