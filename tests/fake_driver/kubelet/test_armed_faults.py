from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFault, ArmedFaults, FaultTriggered
from fake_driver.preparing.claims import ClaimRef

ONE, TWO = ClaimRef("u1", "default", "one"), ClaimRef("u2", "default", "two")


class Caller:
    """Somebody who is there, or has gone already."""

    def __init__(self, there: bool = True) -> None:
        self.there = there

    def add_callback(self, tell: Callable[[], None]) -> bool:
        if self.there:
            tell()  # he gives up at once
        return self.there


class Armed:
    def __init__(self, folder: Path, *traps: ArmedFault) -> None:
        self.died: list[int] = []
        self.traps = ArmedFaults(Journal(folder / "journal.jsonl"), self.died.append)
        for trap in traps:
            self.traps.arm(trap)

    def meet(self, *refs: ClaimRef, call: str = "prepare") -> dict[str, str]:
        return self.traps.meet(call, refs, self.devices, Caller())

    @staticmethod
    def devices(ref: ClaimRef) -> list[str]:
        return {"u1": ["gpu-0"], "u2": ["gpu-1"]}[ref.uid]


def test_a_trap_catches_as_many_calls_as_it_was_told(tmp_path: Path) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", times=2, message="no"))
    assert [armed.meet(ONE), armed.meet(ONE, call="unprepare"), armed.meet(TWO), armed.meet(ONE)] == [
        {"u1": "no"}, {}, {"u2": "no"}, {},
    ]  # fmt: skip


def test_without_an_end_it_catches_until_it_is_cleared(tmp_path: Path) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", times=0))
    assert all(armed.meet(ONE) for _ in range(50))
    assert armed.traps.clear() == 1
    assert armed.meet(ONE) == {}


@pytest.mark.parametrize(
    "trap",
    [
        ArmedFault("prepare", claim="u2"),
        ArmedFault("prepare", claim="default/two"),
        ArmedFault("prepare", device="gpu-1"),
    ],
)
def test_only_what_was_named_is_caught(tmp_path: Path, trap: ArmedFault) -> None:
    armed = Armed(tmp_path, trap)
    assert armed.meet(ONE) == {}
    assert armed.meet(ONE, TWO) == {"u2": "fault prepare"}


def test_a_code_fails_the_whole_call(tmp_path: Path) -> None:
    with pytest.raises(FaultTriggered, match="fault prepare") as sprung:
        Armed(tmp_path, ArmedFault("prepare", code="ABORTED")).meet(ONE)
    assert sprung.value.code.name == "ABORTED"


def test_a_delay_alone_ends_well(tmp_path: Path) -> None:
    assert Armed(tmp_path, ArmedFault("prepare", delay=60)).meet(ONE) == {}


@pytest.mark.parametrize("there", [True, False])
def test_who_hangs_is_let_go_when_nobody_waits_for_him(tmp_path: Path, there: bool) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", hang=True))
    with pytest.raises(FaultTriggered) as sprung:
        armed.traps.meet("prepare", [ONE], armed.devices, Caller(there))
    assert sprung.value.code.name == "DEADLINE_EXCEEDED"


def test_who_hangs_is_let_go_also_by_who_clears_while_it_is_being_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed, patient = Armed(tmp_path, ArmedFault("prepare", hang=True)), Caller()
    monkeypatch.setattr(patient, "add_callback", lambda _tell: True)
    monkeypatch.setattr(Journal, "note", lambda *_, **__: armed.traps.clear())
    raised: list[FaultTriggered] = []

    def meet() -> None:
        with pytest.raises(FaultTriggered) as found:
            armed.traps.meet("prepare", [ONE], armed.devices, patient)
        raised.append(found.value)

    waiting = threading.Thread(target=meet, daemon=True)
    waiting.start()
    waiting.join(5)
    assert [str(each) for each in raised] == ["fault prepare"]


def test_the_driver_dies_where_it_was_told_and_the_journal_has_it(tmp_path: Path) -> None:
    armed = Armed(tmp_path)
    armed.traps.arm_crash("after-cdi")
    armed.traps.reached("before-checkpoint")
    assert armed.died == []
    armed.traps.reached("after-cdi")
    assert armed.died == [137]
    assert '"crash", "point": "after-cdi"' in (tmp_path / "journal.jsonl").read_text()


def test_what_is_armed_is_shown(tmp_path: Path) -> None:
    shown: dict[str, Any] = Armed(tmp_path, ArmedFault("prepare", times=3, code="ABORTED")).traps.shown()
    assert shown == {"faults": [{"call": "prepare", "times": 3, "code": "ABORTED", "left": 3}], "crash": []}
