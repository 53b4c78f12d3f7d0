from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFault, ArmedFaults, FaultTriggered
from fake_driver.preparing.claims import ClaimRef

ONE, TWO = ClaimRef("u1", "default", "one"), ClaimRef("u2", "default", "two")


class Caller:
    """A gRPC context whose caller cancels immediately, or has gone already."""

    def __init__(self, is_active: bool = True) -> None:
        self.is_active = is_active

    def add_callback(self, callback: Callable[[], None]) -> bool:
        if self.is_active:
            callback()
        return self.is_active


class Armed:
    def __init__(self, folder: Path, *armed_faults: ArmedFault) -> None:
        self.armed_faults = ArmedFaults(Journal(folder / "journal.jsonl"))
        for fault in armed_faults:
            self.armed_faults.arm(fault)

    def apply(self, *refs: ClaimRef, call: str = "prepare") -> dict[str, str]:
        return self.armed_faults.apply(call, refs, self.devices, Caller())

    @staticmethod
    def devices(ref: ClaimRef) -> list[str]:
        return {"u1": ["gpu-0"], "u2": ["gpu-1"]}[ref.uid]


def test_a_fault_applies_to_the_given_number_of_calls(tmp_path: Path) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", times=2, message="no"))
    assert [armed.apply(ONE), armed.apply(ONE, call="unprepare"), armed.apply(TWO), armed.apply(ONE)] == [
        {"u1": "no"}, {}, {"u2": "no"}, {},
    ]  # fmt: skip


def test_a_fault_without_a_limit_applies_until_it_is_cleared(tmp_path: Path) -> None:
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
def test_a_fault_applies_only_to_the_given_claim_or_device(tmp_path: Path, fault: ArmedFault) -> None:
    armed = Armed(tmp_path, fault)
    assert armed.apply(ONE) == {}
    assert armed.apply(ONE, TWO) == {"u2": "fault prepare"}


def test_a_code_fails_the_whole_call(tmp_path: Path) -> None:
    with pytest.raises(FaultTriggered, match="fault prepare") as triggered:
        Armed(tmp_path, ArmedFault("prepare", code="ABORTED")).apply(ONE)
    assert triggered.value.code.name == "ABORTED"


def test_a_delay_alone_is_no_error(tmp_path: Path) -> None:
    assert Armed(tmp_path, ArmedFault("prepare", delay=60)).apply(ONE) == {}


@pytest.mark.parametrize("is_active", [True, False])
def test_a_hanging_call_ends_when_its_caller_has_gone(tmp_path: Path, is_active: bool) -> None:
    armed = Armed(tmp_path, ArmedFault("prepare", hang=True))
    with pytest.raises(FaultTriggered) as triggered:
        armed.armed_faults.apply("prepare", [ONE], armed.devices, Caller(is_active))
    assert triggered.value.code.name == "DEADLINE_EXCEEDED"


def test_clearing_ends_a_call_whose_delay_has_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    armed, patient = Armed(tmp_path, ArmedFault("prepare", hang=True)), Caller()
    monkeypatch.setattr(patient, "add_callback", lambda _callback: True)
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


def test_armed_faults_as_data(tmp_path: Path) -> None:
    data = Armed(tmp_path, ArmedFault("prepare", times=3, code="ABORTED")).armed_faults.as_data()
    assert data == [{"call": "prepare", "times": 3, "code": "ABORTED", "left": 3}]
