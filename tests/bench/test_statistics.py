"""Figures: medians, spreads and bounds."""

from testbed.bench.statistics import Figure, figures


def test_a_row_has_the_median_the_spread_and_the_bound() -> None:
    figure = Figure("up", "s", (5.0, 3.0, 9.0), bound=4)

    assert figure.as_row() == ("up", "5.00 s", "3.00 to 9.00", "<= 4 ✗")


def test_a_figure_without_a_bound_meets_it() -> None:
    assert Figure("up", "s", (5.0,)).meets_bound
    assert Figure("up", "s", (5.0,)).as_row()[3] == ""


def test_figures_have_the_order_of_the_samples_and_their_bounds() -> None:
    found = figures([{"b": 1.0, "a": 2.0}, {"b": 3.0, "a": 4.0}, {"a": 9.0}], "s", {"a": 4})

    assert [(f.name, f.values, f.meets_bound) for f in found] == [("b", (1.0, 3.0), True), ("a", (2.0, 4.0, 9.0), True)]


def test_the_data_has_every_value() -> None:
    assert Figure("up", "s", (1.0, 2.0), bound=5).as_data()["values"] == [1.0, 2.0]
