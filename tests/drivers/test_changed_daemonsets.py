from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.changed_daemonsets import UNDO, merge_patch, undo, undo_all
from testbed.errors import ApiError
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


@pytest.mark.parametrize(
    "annotation",
    [
        "",
        "{",
        "[]",
        '{"testbed": "bbbbbbbbbbbb", "spec": {"paused": true}}',
        '{"testbed": "aaaaaaaaaaaa"}',
        '{"testbed": "aaaaaaaaaaaa", "spec": "text"}',
        '{"testbed": "aaaaaaaaaaaa", "spec": {"template": null}}',
        "[" * 100_000,
    ],
    ids=range(8),
)
def test_annotations_of_others_change_nothing(annotation: str) -> None:
    kube = FakeKube()
    found = kube.put("DaemonSet", "driver", "theirs", metadata={"annotations": {UNDO: annotation}}, spec={})
    assert not undo(kube, found, OWNER)  # type: ignore[arg-type]
    assert found["spec"] == {}


class Refusing(FakeKube):
    """A cluster that refuses every patch with this status."""

    status = 422

    def patch(self, target: Any, change: Any, **_: Any) -> Any:
        raise ApiError("PATCH DaemonSet", self.status, "Invalid", "spec.template.spec.affinity: Invalid value")


def _stopped(kube: FakeKube) -> FakeKube:
    forged = '{"testbed": "aaaaaaaaaaaa", "spec": {"template": {"spec": {"affinity": 1}}}}'
    kube.put("DaemonSet", "driver", "theirs", metadata={"annotations": {UNDO: forged}}, spec={})
    return kube


def test_an_annotation_of_others_does_not_stop_down() -> None:
    assert undo_all(_stopped(Refusing()), OWNER) == []  # type: ignore[arg-type]


def test_a_change_that_may_not_be_undone_is_reported() -> None:
    kube = Refusing()
    kube.status = 403
    with pytest.raises(ApiError, match="Invalid value"):
        undo_all(_stopped(kube), OWNER)  # type: ignore[arg-type]
