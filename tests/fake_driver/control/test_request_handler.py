"""Requests of any form get an answer and break nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fake_driver.control.request_handler import RequestHandler
from fake_driver.crash_points import ArmedCrashes
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.settings import Settings
from tests.fake_driver.control.test_live_hardware import Running

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_VERBS = st.sampled_from(
    [
        "unplug",
        "plug",
        "set",
        "taint",
        "untaint",
        "health",
        "restore",
        "fault",
        "clear",
        "crash",
        "lose-cdi",
        "release",
        "state",
        "journal",
    ]
)
_KEYS = st.sampled_from(
    ["device", "attributes", "capacity", "new", "key", "value", "effect", "status", "message", "call", "times", "code", "delay",
     "hang", "claim", "force", "point", "since", "limit"]
)  # fmt: skip
_VALUES = _JSON | st.sampled_from(
    ["gpu-0", "gpu-1", "prepare", "UNAVAILABLE", "after-cdi", "NoSchedule", "healthy", "x/y"]
)


@pytest.fixture
def handler(tmp_path: Path) -> RequestHandler:
    journal = Journal(tmp_path / "asked.jsonl")
    running = Running(tmp_path)
    folder = CdiFolder(tmp_path / "cdi", "gpu.example")
    return RequestHandler(
        Settings(node="worker"),
        running.hardware,
        ArmedFaults(journal),
        ArmedCrashes(journal, lambda _code: None),
        folder,
        journal,
        lambda *_: True,
    )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    request=_JSON
    | st.builds(lambda verb, more: {**more, "verb": verb}, _VERBS, st.dictionaries(_KEYS, _VALUES, max_size=5))
)
def test_every_request_is_answered_and_an_invalid_one_changes_nothing(handler: RequestHandler, request: Any) -> None:
    before = handler.handle({"verb": "state"})
    answer = handler.handle(request)
    json.dumps(answer)
    assert answer["ok"] or "internal error" not in answer["error"], answer
    if not answer["ok"]:
        after = handler.handle({"verb": "state"})
        assert {**after, "journal": 0} == {**before, "journal": 0}


def test_the_number_of_armed_faults_is_limited(handler: RequestHandler) -> None:
    answers = [handler.handle({"verb": "fault", "call": "prepare"}) for _ in range(101)]
    assert [each["ok"] for each in answers] == [True] * 100 + [False]
    assert "too many faults" in answers[-1]["error"]
