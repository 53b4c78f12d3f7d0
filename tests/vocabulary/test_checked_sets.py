"""No comparison of a CheckedSet passes only because a side is empty."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

import pytest

from testbed.vocabulary.checked_sets import NONE, CheckedSet, NothingToCompare
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.pods.probe_results import ProbeResult, SeenDevices

EMPTY, SOME, MORE = CheckedSet[str](), CheckedSet(["a"]), CheckedSet(["a", "b"])
Comparison = Callable[[AbstractSet[str], AbstractSet[str]], object]


@pytest.mark.parametrize(
    ("compare", "one", "other"),
    [
        (lambda one, other: one == other, EMPTY, EMPTY),
        (lambda one, other: one == other, EMPTY, frozenset()),
        (lambda one, other: one == other, EMPTY, set()),
        (lambda one, other: one == other, frozenset(), EMPTY),
        (lambda one, other: {"pod": one} == {"pod": other}, EMPTY, CheckedSet()),
        (lambda one, other: one == other == SOME, EMPTY, EMPTY),
        (lambda one, other: one != other, SOME, EMPTY),
        (lambda one, other: one != other, EMPTY, SOME),
        (lambda one, other: one != other, SOME, frozenset()),
        (lambda one, other: one <= other, EMPTY, SOME),
        (lambda one, other: one < other, EMPTY, SOME),
        (lambda one, other: one >= other, SOME, EMPTY),
        (lambda one, other: one > other, SOME, EMPTY),
        (lambda one, other: one & other, SOME, EMPTY),
        (lambda one, other: one & other, EMPTY, SOME),
        (lambda one, other: one.isdisjoint(other), EMPTY, SOME),
        (lambda one, other: one.isdisjoint(other), SOME, EMPTY),
        (lambda one, _: "a" not in one, EMPTY, SOME),
    ],
)
def test_an_empty_side_cannot_make_a_comparison_pass(
    compare: Comparison, one: AbstractSet[str], other: AbstractSet[str]
) -> None:
    with pytest.raises(NothingToCompare, match="expected something to compare"):
        compare(one, other)


def test_comparisons_of_sets_that_are_not_empty_are_as_usual() -> None:
    assert SOME == {"a"} == SOME
    assert SOME != MORE
    assert SOME <= MORE
    assert SOME < MORE
    assert MORE >= SOME
    assert MORE > SOME
    assert "a" in SOME
    assert "b" not in SOME
    assert {"a"} == SOME & MORE
    assert SOME.isdisjoint(CheckedSet(["c"]))
    assert hash(SOME) == hash(frozenset({"a"}))
    assert repr(SOME) == "frozenset({'a'})"


def test_a_comparison_that_an_empty_side_makes_fail_is_false() -> None:
    assert not (EMPTY == SOME)  # noqa: SIM201 - != raises
    assert not (SOME == EMPTY)  # noqa: SIM201
    assert not (MORE <= EMPTY)
    assert not (EMPTY >= SOME)


def test_emptiness_is_wanted_explicitly() -> None:
    assert EMPTY == NONE
    assert not (SOME == NONE)  # noqa: SIM201
    assert SOME & CheckedSet(["b"]) == NONE
    assert SOME - MORE == NONE
    assert {"pod": EMPTY} == {"pod": NONE}


def test_results_of_set_operations_are_checked_too() -> None:
    with pytest.raises(NothingToCompare):
        assert frozenset() == SOME - MORE
    with pytest.raises(NothingToCompare):
        assert frozenset() == EMPTY | EMPTY


def test_the_error_says_why_containers_see_no_device() -> None:
    one, other = (SeenDevices([ProbeResult(pod, "c", "", "")]) for pod in ("one", "other"))
    with pytest.raises(NothingToCompare) as raised:
        assert one == other == SOME
    assert str(raised.value).splitlines() == [
        "expected something to compare, but there is nothing on both sides of ==",
        "  likely cause: the driver added nothing to the container, or no line that the probe printed matches spec.probe",
    ]


def test_no_pods_cannot_be_judged() -> None:
    with pytest.raises(NothingToCompare, match="expected pods to judge, but there is none"):
        Pods(())
