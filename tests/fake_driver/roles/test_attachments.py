from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fake_driver.roles.attachments import field_manager, pending_attachments, status_entry

DRIVER = "gpu.example"
PLACE = {"driver": DRIVER, "pool": "box", "device": "x-0"}
BOUND = {**PLACE, "bindingConditions": ["a", "b"], "bindingFailureConditions": ["broken", "lost"]}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def claim(*results: dict[str, Any], said: tuple[dict[str, Any], ...] = (), **metadata: str) -> dict[str, Any]:
    status = {"allocation": {"allocationTimestamp": "then", "devices": {"results": list(results)}}, "devices": said}
    return {"metadata": {"name": "one", "namespace": "default", "uid": "u", **metadata}, "status": status}


def true(*kinds: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": "True"} for kind in kinds]


def test_a_device_with_binding_conditions_waits() -> None:
    (one,) = pending_attachments(claim(BOUND), DRIVER)
    assert (one.uid, one.device, one.conditions, one.allocated) == ("u", ("box", "x-0"), ("a", "b"), "then")


@pytest.mark.parametrize(
    "result", [PLACE, {**BOUND, "driver": "other.example"}, {**BOUND, "bindingConditions": []}], ids=str
)
def test_other_devices_wait_for_nothing(result: dict[str, Any]) -> None:
    assert pending_attachments(claim(result), DRIVER) == []


def test_a_claim_that_is_not_allocated_or_is_deleted_waits_for_nothing() -> None:
    unallocated = {"metadata": {"name": "one", "namespace": "default", "uid": "u"}, "status": {}}
    assert pending_attachments(unallocated, DRIVER) == []
    assert pending_attachments(claim(BOUND, deletionTimestamp="now"), DRIVER) == []


@pytest.mark.parametrize(
    ("conditions", "is_open"),
    [(true("a"), True), (true("a", "b"), False), (true("lost"), False), ([{"type": "lost", "status": "False"}], True)],
)
def test_it_waits_until_all_conditions_are_true_or_one_of_failure(
    conditions: list[dict[str, str]], is_open: bool
) -> None:
    assert bool(pending_attachments(claim(BOUND, said=({**PLACE, "conditions": conditions},)), DRIVER)) is is_open


def test_each_share_of_a_device_waits_separately() -> None:
    one, two = ({**BOUND, "shareID": share} for share in ("s-1", "s-2"))
    told = {**PLACE, "shareID": "s-1", "conditions": true("a", "b")}
    (left,) = pending_attachments(claim(one, two, said=(told,)), DRIVER)
    assert dict(left.device_key)["shareID"] == "s-2"


def test_the_status_entry_contains_only_that_device() -> None:
    (one,) = pending_attachments(claim(BOUND), DRIVER)
    entry, bad = (status_entry(one, failed=failed, now=NOW) for failed in (False, True))
    assert {key: entry[key] for key in PLACE} == PLACE
    assert [(each["type"], each["status"]) for each in entry["conditions"]] == [("a", "True"), ("b", "True")]
    assert {each["lastTransitionTime"] for each in entry["conditions"]} == {"2026-01-02T03:04:05Z"}
    assert [each["type"] for each in bad["conditions"]] == ["broken"]


def test_each_share_of_a_device_has_its_own_field_manager() -> None:
    names = {
        field_manager("d" * 63, one)
        for claim_ in (claim(BOUND), claim({**BOUND, "shareID": "s-1"}), claim({**BOUND, "device": "x-1"}))
        for one in pending_attachments(claim_, DRIVER)
    }
    assert len(names) == 3
    assert max(map(len, names)) <= 128
