"""The page that `bench driver --write` makes."""

import platform

from testbed.bench.comparison import Comparison
from testbed.bench.page import machine, table, written


def test_a_table_is_markdown_with_numbers_on_the_right() -> None:
    assert table(["what", "ours", "bound"], [["start", "1 s", ""]]) == (
        "| what | ours | bound |\n| --- | ---: | --- |\n| start | 1 s |  |"
    )


def test_the_page_says_versions_values_and_why_some_are_missing() -> None:
    comparison = Comparison("ours", {"ours": "1.2.3", "peer": "4.5.6"}, "1.37.1")
    comparison.note("ours", "start", 0.25)
    comparison.refuse("peer", "start", "it\nended")

    page = written(comparison, claims=7, rounds=2)

    assert all(
        words in page
        for words in ("ours 1.2.3, peer 4.5.6", "7 claims", "2 rounds", "0.25 s", "* peer, start: it ended")
    )
    assert "{{" not in page


def test_the_machine_is_described_and_not_named() -> None:
    assert "cores of" in machine()
    assert platform.node() not in machine()
