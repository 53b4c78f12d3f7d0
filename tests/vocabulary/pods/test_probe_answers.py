"""Answers of probes that name no device."""

from __future__ import annotations

from dataclasses import replace

from testbed.drivers.published.slices import Device
from testbed.vocabulary.pods.probe_answers import Answer, from_count, from_exit_code, from_set

ONE, OTHER = Device("d", "node-1", "gpu-0"), Device("d", "node-1", "gpu-1")


def _answer(members: str, *devices: Device) -> Answer:
    return Answer(frozenset(members.split()), frozenset(devices))


def test_a_probe_that_succeeds_shows_the_devices_of_the_container() -> None:
    assert from_exit_code(_answer("0", ONE, OTHER), "d") == {ONE, OTHER}
    assert from_exit_code(_answer("", ONE), "d") == frozenset()


def test_a_probe_that_succeeds_without_a_claim_shows_an_unknown_device() -> None:
    (found,) = from_exit_code(_answer("0"), "d")
    assert found not in (ONE, OTHER)


def test_a_count_is_compared_with_the_number_of_devices() -> None:
    assert from_count(_answer("0 1", ONE, OTHER), "d") == {ONE, OTHER}
    assert from_count(_answer("0", ONE, OTHER), "d") == {ONE}
    assert len(from_count(_answer("0 1 2", ONE, OTHER), "d") - {ONE, OTHER}) == 1
    assert len(from_count(_answer("0 1"), "d")) == 2


def test_a_set_that_no_other_container_shows_is_the_containers_own() -> None:
    assert from_set(_answer("2 3", ONE), [_answer("4", OTHER), _answer("0 1")], "d") == {ONE}


def test_a_set_as_without_a_claim_shows_no_device() -> None:
    assert from_set(_answer("0 1", ONE), [_answer("0 1")], "d") == frozenset()
    assert from_set(_answer("", ONE), [], "d") == frozenset()


def test_a_set_with_a_member_of_another_claim_shows_its_device() -> None:
    assert from_set(_answer("2 3", ONE), [_answer("3 4", OTHER)], "d") == {ONE, OTHER}


def test_containers_that_share_a_claim_must_show_the_same_set() -> None:
    assert from_set(_answer("2", ONE), [_answer("2", ONE)], "d") == {ONE}
    assert len(from_set(_answer("2", ONE), [_answer("3", ONE)], "d")) == 2


def test_claims_that_share_a_device_may_show_different_parts_of_it() -> None:
    one, other = (replace(_answer(members, ONE), claims=frozenset({members})) for members in ("2", "3"))
    assert from_set(one, [other], "d") == {ONE}


def test_containers_with_some_common_devices_are_not_compared() -> None:
    assert from_set(_answer("2 3", ONE, OTHER), [_answer("3", OTHER)], "d") == {ONE, OTHER}


def test_a_container_without_a_claim_sees_the_devices_whose_members_it_shows() -> None:
    assert from_set(_answer("0 3"), [_answer("3", ONE), _answer("4", OTHER)], "d") == {ONE}
    assert from_set(_answer("0 1"), [_answer("3", ONE), _answer("4", OTHER)], "d") == frozenset()
    assert from_set(_answer("0 1"), [_answer("0 2")], "d") == frozenset()
