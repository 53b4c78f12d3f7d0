"""The page that `bench driver --write` renders."""

import platform

from testbed.bench.comparison import Comparison
from testbed.bench.page import describe_machine, markdown_table, render_page


def test_numbers_in_a_markdown_table_are_aligned_to_the_right() -> None:
    assert markdown_table(["what", "ours", "bound"], [["start", "1 s", ""]]) == (
        "| what | ours | bound |\n| --- | ---: | --- |\n| start | 1 s |  |"
    )


def test_the_page_has_versions_values_and_reasons_for_missing_values() -> None:
    comparison = Comparison("ours", {"ours": "1.2.3", "peer": "4.5.6"}, "1.37.1")
    comparison.add("ours", "start", 0.25)
    comparison.add_failure("peer", "start", "it\nended")

    page = render_page(comparison, claims=7, rounds=2)

    assert all(
        text in page for text in ("ours 1.2.3, peer 4.5.6", "7 claims", "2 rounds", "0.25 s", "* peer, start: it ended")
    )
    assert "{{" not in page


def test_the_description_of_the_machine_has_no_host_name() -> None:
    assert "cores of" in describe_machine()
    assert platform.node() not in describe_machine()
