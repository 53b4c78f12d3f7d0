"""The page that `bench driver --write` makes."""

import platform

from testbed.bench.comparison import Comparison
from testbed.bench.page import describe_machine, markdown_table, render_page


def test_a_table_is_markdown_with_numbers_on_the_right() -> None:
    assert markdown_table(["what", "ours", "bound"], [["start", "1 s", ""]]) == (
        "| what | ours | bound |\n| --- | ---: | --- |\n| start | 1 s |  |"
    )


def test_the_page_says_versions_values_and_why_some_are_missing() -> None:
    comparison = Comparison("ours", {"ours": "1.2.3", "peer": "4.5.6"}, "1.37.1")
    comparison.add("ours", "start", 0.25)
    comparison.add_failure("peer", "start", "it\nended")

    page = render_page(comparison, claims=7, rounds=2)

    assert all(
        words in page
        for words in ("ours 1.2.3, peer 4.5.6", "7 claims", "2 rounds", "0.25 s", "* peer, start: it ended")
    )
    assert "{{" not in page


def test_the_machine_is_described_and_not_named() -> None:
    assert "cores of" in describe_machine()
    assert platform.node() not in describe_machine()
