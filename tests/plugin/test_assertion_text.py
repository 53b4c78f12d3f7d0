"""The text of a failed assertion, from its source and what pytest compared."""

from __future__ import annotations

import pytest

from testbed.drivers.published.slices import Device
from testbed.plugin.assertion_text import FailedComparison, explain_assertion


@pytest.mark.parametrize(
    ("source", "op", "left", "right", "said"),
    [
        ("len(pod.seen) == 1", "==", 0, 1, "expected len(pod.seen) to be 1; it is 0"),
        ("claim.owner is None", "is", "pod", None, "expected claim.owner to be None; it is 'pod'"),
        ("claim.owner is not None", "is not", None, None, "expected claim.owner not to be None"),
        ("first.uid != second.uid", "!=", "a", "a", "expected first.uid not to be 'a'"),
        ("claim.age <= 3", "<=", 4, 3, "expected claim.age to be at most 3; it is 4"),
        ("pod.seen <= {'a'}", "<=", {"b"}, {"a"}, "expected pod.seen to be within {'a'}; it is {'b'}"),
        ("pod.seen == set()", "==", {"b"}, set(), "expected pod.seen to be {}; it is {'b'}"),
        ("pod.seen == other.seen", "==", frozenset(), frozenset("b"), "expected pod.seen to be {'b'}; it is {}"),
        ("'no' in pod.event", "in", "no", "yes", "expected 'no' in pod.event; that is 'yes'"),
        ("'no' not in pod.event", "not in", "no", "noon", "expected 'no' to be absent from pod.event; that is 'noon'"),
    ],
)
def test_a_comparison_is_described_with_its_expression(
    source: str, op: str, left: object, right: object, said: str
) -> None:
    assert explain_assertion(f"assert {source}", "assert what pytest said", FailedComparison(op, left, right)) == said


def test_devices_are_shown_by_name_and_pool() -> None:
    one, two = (Device("gpu.example", "node-1", name) for name in ("gpu-0", "gpu-1"))

    said = explain_assertion(
        "assert claim.devices == {one}", "assert {...", FailedComparison("==", frozenset({two}), {one})
    )

    assert said == "expected claim.devices to be {gpu-0 of node-1}; it is {gpu-1 of node-1}"


def test_the_keys_in_which_mappings_differ_are_listed() -> None:
    compared = FailedComparison("==", {"a": 1, "b": 2, "d": 4}, {"a": 1, "b": 3, "c": 5})

    _, *told = explain_assertion("assert claim.data == {'a': 1}", "assert {...", compared).splitlines()

    assert told == [
        "  difference: b: expected 3, found 2",
        "  difference: c: expected 5, found nothing",
        "  difference: d: expected nothing, found 4",
    ]


def test_long_values_and_expressions_are_shortened() -> None:
    left = {f"device-{number:02}" for number in range(99)}
    source = "assert " + " | ".join(f"name{number}" for number in range(99)) + " == set()"

    told = explain_assertion(source, "assert {...", FailedComparison("==", left, set()))

    assert "name9 | " in told
    assert told.endswith("; it is {'device-00', 'device-01', 'device-02', 'device-03', 'device-04', 'device-05', ...}")
    assert len(told) < 400


def test_other_expressions_are_described_too() -> None:
    said = "assert not (pool node-1: 2 of 3 slices,)\n +  where it is"

    assert explain_assertion("assert not driver.pools", said, None) == (
        "expected driver.pools to be empty or false; it is (pool node-1: 2 of 3 slices,)"
    )
    assert explain_assertion("assert claim.shares", "assert []\n +  where", None) == (
        "expected claim.shares not to be empty or false; it is []"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise AssertionError('why')", "why"),
        ("for it in all:", "assert 0 == 1"),
        ("", "assert 0 == 1"),
    ],
)
def test_an_assertion_outside_the_test_keeps_its_text(source: str, said: str) -> None:
    assert explain_assertion(source, said, FailedComparison("==", 0, 1)) == said


def test_the_failed_comparison_of_a_chain_is_described() -> None:
    compared = FailedComparison("==", frozenset(), {"one"})

    assert explain_assertion("assert a == b != set()", "assert {", compared) == "expected a to be {'one'}; it is {}"
    assert explain_assertion("assert a == b == c", "assert {", compared) == (
        "expected a == b == c; one of these is {}, the next is {'one'}"
    )


def test_a_comparison_that_is_not_in_the_statement_is_not_described() -> None:
    stale = explain_assertion("assert a != 2", "assert 2 != 2", FailedComparison("==", 0, 1))

    assert stale == "expected a != 2; found 2 != 2"


def test_an_assertion_with_a_message_shows_no_python_objects() -> None:
    statement = 'assert account.refusal_to_publish(), "a slice would be accepted"'
    of_pytest = "a slice would be accepted\nassert ''\n +  where '' = refusal_to_publish()\n +    where <Account(world=World(…))>"
    assert explain_assertion(statement, of_pytest, None) == "a slice would be accepted"
