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
    def __init__(self, folder: Path, *armed_faults: ArmedFault) -> None:
        self.died: list[int] = []
        self.armed_faults = ArmedFaults(Journal(folder / "journal.jsonl"), self.died.append)
        for fault in armed_faults:
            self.armed_faults.arm(fault)

    def apply(self, *refs: ClaimRef, call: str = "prepare") -> dict[str, str]:
        return self.armed_faults.apply(call, refs, self.devices, Caller())

    @staticmethod
    def devices(ref: ClaimRef) -> list[str]:
        return {"u1": ["gpu-0"], "u2": ["gpu-1"]}[ref.uid]


def test_a_trap_catches_as_many_calls_as_it_was_told(tmp_path: Path) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", times=2, message="no"))
    assert [armed.apply(ONE), armed.apply(ONE, call="unprepare"), armed.apply(TWO), armed.apply(ONE)] == [
        {"u1": "no"}, {}, {"u2": "no"}, {},
    ]  # fmt: skip


def test_without_an_end_it_catches_until_it_is_cleared(tmp_path: Path) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", times=0))
    assert all(armed.apply(ONE) for _ in range(50))
    assert armed.armed_faults.clear() == 1
    assert armed.apply(ONE) == {}


@pytest.mark.parametrize(
    "fault",
    [
        ArmedFault("prepare", claim="u2"),
        ArmedFault("prepare", claim="default/two"),
        ArmedFault("prepare", device="gpu-1"),
    ],
)
def test_only_what_was_named_is_caught(tmp_path: Path, fault: ArmedFault) -> None:
    armed = Armed(tmp_path, fault)
    assert armed.apply(ONE) == {}
    assert armed.apply(ONE, TWO) == {"u2": "fault prepare"}


def test_a_code_fails_the_whole_call(tmp_path: Path) -> None:
    with pytest.raises(FaultTriggered, match="fault prepare") as sprung:
        Armed(tmp_path, ArmedFault("prepare", code="ABORTED")).apply(ONE)
    assert sprung.value.code.name == "ABORTED"


def test_a_delay_alone_ends_well(tmp_path: Path) -> None:
    assert Armed(tmp_path, ArmedFault("prepare", delay=60)).apply(ONE) == {}


@pytest.mark.parametrize("there", [True, False])
def test_who_hangs_is_let_go_when_nobody_waits_for_him(tmp_path: Path, there: bool) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", hang=True))
    with pytest.raises(FaultTriggered) as sprung:
        armed.armed_faults.apply("prepare", [ONE], armed.devices, Caller(there))
    assert sprung.value.code.name == "DEADLINE_EXCEEDED"


def test_who_hangs_is_let_go_also_by_who_clears_while_it_is_being_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed, patient = Armed(tmp_path, ArmedFault("prepare", hang=True)), Caller()
    monkeypatch.setattr(patient, "add_callback", lambda _tell: True)
    monkeypatch.setattr(Journal, "record", lambda *_, **__: armed.armed_faults.clear())
    raised: list[FaultTriggered] = []

    def apply() -> None:
        with pytest.raises(FaultTriggered) as found:
            armed.armed_faults.apply("prepare", [ONE], armed.devices, patient)
        raised.append(found.value)

    waiting = threading.Thread(target=apply, daemon=True)
    waiting.start()
    waiting.join(5)
    assert [str(each) for each in raised] == ["fault prepare"]


def test_the_driver_dies_where_it_was_told_and_the_journal_has_it(tmp_path: Path) -> None:
    armed = Armed(tmp_path)
    armed.armed_faults.arm_crash("after-cdi")
    armed.armed_faults.reached("before-checkpoint")
    assert armed.died == []
    armed.armed_faults.reached("after-cdi")
    assert armed.died == [137]
    assert '"crash", "point": "after-cdi"' in (tmp_path / "journal.jsonl").read_text()


def test_what_is_armed_is_shown(tmp_path: Path) -> None:
    shown: dict[str, Any] = Armed(tmp_path, ArmedFault("prepare", times=3, code="ABORTED")).armed_faults.as_data()
    assert shown == {"faults": [{"call": "prepare", "times": 3, "code": "ABORTED", "left": 3}], "crash": []}
