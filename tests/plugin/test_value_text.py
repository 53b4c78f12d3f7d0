"""Short texts of values and of their differences."""

from __future__ import annotations

import pytest

from testbed.drivers.published.slices import Device
from testbed.plugin.value_text import differences, short_text
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.pods.probe_results import Settings

DEVICE = Device("gpu.example", "node-1", "gpu-0")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (DEVICE, "gpu-0 of node-1"),
        (({DEVICE}, 0), "({gpu-0 of node-1}, 0)"),
        ([frozenset({"b", "a"})], "[{'a', 'b'}]"),
        ({"a": Settings("container", ["one"])}, "{'a': {'one'}}"),
        (set(), "{}"),
        ({"a": ["x"]}.items(), "{('a', ['x'])}"),
        ({1, "a"}, "{'a', 1}"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_values_are_shown_without_the_names_of_types(value: object, said: str) -> None:
    assert short_text(value) == said


def test_a_message_of_an_api_server_is_not_shortened() -> None:
    refusal = "spec.devices: Too many: " + "x" * 900

    assert short_text(refusal) == repr(refusal)
    assert len(short_text([refusal])) < 200


@pytest.mark.parametrize(
    ("op", "left", "right", "said"),
    [
        ("==", {1, 3}, {1, 2}, ["lacks {2}, has {3} too"]),
        (">=", {1, 3}, {1, 2}, ["lacks {2}"]),
        ("<=", {1, 3}, {1, 2}, ["has {3} too"]),
        (">", {1, 2}, {1, 2}, ["they are equal"]),
        ("<", {1, 2}, {1, 2}, ["they are equal"]),
        (">", {1}, {1, 2}, ["lacks {2}"]),
        ("!=", {1}, {1}, []),
        ("==", {1}, {2}, []),
        ("<=", {"a": ["x"]}.items(), {"a": ["y"]}.items(), []),
        ("==", 1, 2, []),
        ("<=", [1], [0], []),
        ("<=", CheckedSet(), CheckedSet([1]), []),
        ("==", CheckedSet([1]), CheckedSet(), []),
    ],
)
def test_differences_of_sets(op: str, left: object, right: object, said: list[str]) -> None:
    assert differences(op, left, right) == said


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 5}, ["b: expected 3, found 2", "c: expected 5, found nothing"]),
        ({"d": 4}, {}, ["d: expected nothing, found 4"]),
        ({"ips": ["a", "b"]}, {"ips": ["a", "b", "c"]}, ["ips[2]: expected 'c', found nothing"]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, ["a.b[0].c: expected 2, found 1"]),
        ([1, 1, 2, 2, 3, 3, 5], [1, 1, 2, 2, 3, 3, 4], ["[6]: expected 4, found 5"]),
        ((frozenset(), 0), ({DEVICE}, 0), ["[0]: lacks {gpu-0 of node-1}"]),
        ((CheckedSet(), 0), (CheckedSet([DEVICE]), 0), ["[0]: lacks {gpu-0 of node-1}"]),
        ((CheckedSet([DEVICE]), 0), (CheckedSet(), 1), ["[0]: has {gpu-0 of node-1} too", "[1]: expected 1, found 0"]),
    ],
)
def test_differences_of_mappings_and_lists(left: object, right: object, said: list[str]) -> None:
    assert differences("==", left, right) == said


def test_differences_of_long_texts() -> None:
    (told,) = differences("==", {"name": "x" * 255}, {"name": "x" * 256})

    assert told == (
        f"name: from character 256 on: expected '{'x' * 11}', found '{'x' * 10}'; 256 and 255 characters long"
    )


def test_only_the_first_differences_are_shown() -> None:
    assert len(differences("==", dict.fromkeys(range(99), 0), {})) == 6
