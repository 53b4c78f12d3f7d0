from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.changed_daemonsets import UNDO, merge_patch, undo
from testbed.kube.ownership import Owner
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "aaaaaaaaaaaa")


@pytest.mark.parametrize(
    ("now", "wanted", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_merge_patch(now: Any, wanted: Any, patch: Any) -> None:
    assert merge_patch(now, wanted) == patch


@pytest.mark.parametrize("annotation", ["", "{", "[]", '{"testbed": "bbbbbbbbbbbb", "spec": {"paused": true}}'])
def test_annotations_of_others_change_nothing(annotation: str) -> None:
    kube = FakeKube()
    found = kube.put("DaemonSet", "driver", "theirs", metadata={"annotations": {UNDO: annotation}}, spec={})
    assert not undo(kube, found, OWNER)  # type: ignore[arg-type]
    assert found["spec"] == {}
