"""The table of `bench driver`: medians, ratios, bounds and failures."""

import pytest

from testbed.bench.comparison import QUANTITIES, Comparison, percentile

BY_KEY = {quantity.key: quantity for quantity in QUANTITIES}


def found(ours: list[float], peer: list[float], key: str = "start") -> Comparison:
    comparison = Comparison("ours", {"ours": "1", "peer": "2"}, "1.37")
    for title, values in (("ours", ours), ("peer", peer)):
        for value in values:
            comparison.add(title, key, value)
    return comparison


def row(comparison: Comparison, key: str) -> list[str]:
    return comparison.rows()[list(BY_KEY).index(key)]


@pytest.mark.parametrize(("rank", "value"), [(50, 100), (99, 198), (100, 200), (1, 2)])
def test_a_percentile_is_one_of_the_values(rank: int, value: float) -> None:
    assert percentile([float(each) for each in range(200, 0, -1)], rank) == value


def test_a_row_has_medians_with_their_spread_the_ratio_and_the_bound() -> None:
    assert row(found([1, 9, 2], [4, 4, 5]), "start") == [
        "start to all slices published", "2.00 s (1.00 to 9.00)", "4.00 s (4.00 to 5.00)", "0.50", "<= 1 x ✓",
    ]  # fmt: skip


@pytest.mark.parametrize(("ours", "kept"), [([60.0], True), ([61.0], False)])
def test_a_ratio_has_a_bound(ours: list[float], kept: bool) -> None:
    assert found(ours, [40], "memory idle").meets_bounds(BY_KEY["memory idle"]) is kept


def test_an_absolute_bound_does_not_depend_on_peers() -> None:
    assert found([81], [800], "memory idle").meets_bounds(BY_KEY["memory idle"]) is False


def test_the_ratio_to_every_peer_must_meet_the_bound() -> None:
    comparison = found([2], [3])
    comparison.versions["slim"] = "1"
    comparison.add("slim", "start", 1)

    assert comparison.meets_bounds(BY_KEY["start"]) is False


def test_a_missing_value_of_ours_does_not_meet_the_bound_and_has_a_reason() -> None:
    comparison = found([], [1])
    comparison.add_failure("ours", "start", "it ended")

    assert comparison.meets_bounds(BY_KEY["start"]) is False
    assert row(comparison, "start")[1:4] == ["-", "1.00 s (1.00 to 1.00)", "-"]
    assert comparison.failure_lines() == ["ours, start: it ended"]


def test_a_peer_with_a_permanent_failure_is_recorded_and_ignored_for_the_bound() -> None:
    comparison = found([1], [])
    comparison.add_failure("peer", "start", "too many", permanent=True)
    comparison.versions["slim"] = "1"
    comparison.add("slim", "start", 1)

    assert comparison.meets_bounds(BY_KEY["start"]) is True
    assert comparison.permanently_failed == {"peer"}


@pytest.mark.parametrize("versions", [{"ours": "1"}, {"ours": "1", "peer": "2"}], ids=["no-peer", "all-refused"])
def test_a_ratio_without_a_peer_is_not_compared(versions: dict[str, str]) -> None:
    comparison = found([1], [])
    comparison.versions = versions

    assert comparison.meets_bounds(BY_KEY["start"]) is None
    assert row(comparison, "start")[-1] == "<= 1 x (not compared)"


@pytest.mark.parametrize(("own", "kept", "shown"), [(80.0, None, "(not compared)"), (81.0, False, "✗")])
def test_an_absolute_bound_can_be_exceeded_without_a_peer(own: float, kept: bool | None, shown: str) -> None:
    comparison = found([own], [], "memory idle")

    assert comparison.meets_bounds(BY_KEY["memory idle"]) is kept
    assert row(comparison, "memory idle")[-1] == f"<= 1.5 x, <= 80 MiB {shown}"


def test_an_absolute_bound_can_be_met_without_a_peer() -> None:
    assert found([1], [], "writes").meets_bounds(BY_KEY["writes"]) is True


def test_a_quantity_without_a_bound_has_an_empty_cell() -> None:
    assert row(found([1], [1], "start, many"), "start, many")[-1] == ""


def test_the_data_has_every_value_of_every_driver() -> None:
    data = found([1, 2], [4]).as_data()["quantities"]
    assert isinstance(data, list)
    drivers = next(each for each in data if each["key"] == "start")["drivers"]

    assert drivers == {"ours": {"median": 1.5, "values": [1, 2]}, "peer": {"median": 4, "values": [4]}}
