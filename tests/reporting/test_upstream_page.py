"""Items of upstream tests and the requirements that cover them: file, suites and page must agree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from testbed import folders
from testbed.conformance import E2E, MUST, Requirement, catalogue
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.errors import UsageError
from testbed.reporting import upstream_page
from testbed.reporting.__main__ import stale, write
from testbed.reporting.driver_file_page import BEGIN, END
from testbed.reporting.upstream_page import UpstreamFile

SUITES = folders.data("suites")
KNOWN = upstream_page.read(SUITES / upstream_page.FILE)
DOCS = SUITES.parent / "docs"


def _asked(**why: str) -> UpstreamFile:
    ids = {name: {"title": f"about {name}", "why": text} for name, text in why.items()}
    return UpstreamFile.model_validate({"reasons": {"later": "it is not written yet"}, "ids": ids})


def _entry(number: int, *covers: str, function: str = "test_it") -> Entry:
    made = Requirement(f"T-{number:03}", "It works.", MUST, E2E, "here", covers=covers)
    return Entry(made, Path("suites/test_t.py"), function, "")


def test_every_item_is_covered_or_has_a_reason() -> None:
    assert upstream_page.problems(KNOWN, catalogue.read([SUITES])) == []


def test_no_group_of_ids_has_gaps() -> None:
    counts = {
        "L": 18,
        "P": 9,
        "S": 2,
        "AA": 2,
        "PL": 4,
        "T": 8,
        "DS": 4,
        "M": 4,
        "E": 18,
        "A": 12,
        "R": 15,
        "B": 8,
        "U": 4,
    }
    counts |= {"N": 38, "G": 26, "W": 30, "PD": 1, "CC": 1, "H": 1, "CG": 2, "WL": 2}
    wanted = {f"{group}{number}" for group, count in counts.items() for number in range(1, count + 1)}
    assert {each for each in KNOWN.ids if not each.startswith("#")} == wanted | {"AL"}


@pytest.mark.parametrize(
    ("asked", "entries", "said"),
    [
        ({"L1": ""}, (), "L1 is covered by nothing, and has no `why`"),
        ({"L1": "later"}, (_entry(1, "L1"),), "L1 is covered by T-001: remove its `why`"),
        ({"L1": "later"}, (_entry(1, "L9"),), "T-001 covers L9, which upstream.yaml does not know"),
        ({"L1": "never"}, (), "L1 has the reason never, which upstream.yaml does not know"),
        ({"L1": ""}, (_entry(1, "L1"),), "no item has the reason later"),
    ],
)
def test_every_contradiction_is_reported(asked: dict[str, str], entries: tuple[Entry, ...], said: str) -> None:
    assert any(said in each for each in upstream_page.problems(_asked(**asked), Catalogue(entries)))
    with pytest.raises(UsageError, match="contradict each other"):
        upstream_page.page(_asked(**asked), Catalogue(entries))


# The clauses of the project's catalogue that had neither a requirement nor an id, when the suites were last held against it.
_CLAUSES = {"ADMIN": 2, "API": 1, "CDI": 1, "PRESCHED": 1, "REGRESS": 1, "SLICE": 4, "STATUS": 2}


def test_the_page_lists_ideas_without_a_requirement() -> None:
    assert Counter(each.suite for each in KNOWN.catalogue) == _CLAUSES
    page = upstream_page.page(KNOWN, catalogue.read([SUITES]))
    for each in KNOWN.catalogue:
        assert f"| {each.suite} | {each.title} | {KNOWN.reasons[each.why]} |" in page


def test_a_reason_may_be_used_by_ideas_alone_and_must_be_known() -> None:
    wanted = [{"suite": "CDI", "title": "hooks", "why": "later"}]
    known = UpstreamFile.model_validate({**_asked().model_dump(), "catalogue": wanted})
    assert upstream_page.problems(known, Catalogue(())) == []
    lost = UpstreamFile.model_validate({"reasons": {}, "ids": {}, "catalogue": wanted})
    assert upstream_page.problems(lost, Catalogue(())) == [
        "CDI, hooks: has the reason later, which upstream.yaml does not know"
    ]


def test_the_page_lists_covering_requirements_and_those_without_a_test() -> None:
    known = Catalogue((_entry(1, "L1"), _entry(2, "L1")), (_entry(3, "L1", "L2", function=""),))
    page = upstream_page.page(_asked(L1="", L2="", L3="later"), known)

    assert "| L1 | about L1 | T-001, T-002, T-003 (no test yet) |" in page
    assert "| L3 | about L3 | it is not written yet |" in page
    assert "Of 3 items, 1 are covered by tests, and 1 by requirements without a test." in page


def test_the_pages_are_fresh() -> None:
    assert stale(DOCS) == []


def test_a_page_that_was_changed_or_is_missing_is_stale(tmp_path: Path) -> None:
    (tmp_path / "driver-file.md").write_text(f"by hand\n{BEGIN}\n{END}\n")
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "requirements.md").write_text("changed")
    (tmp_path / "upstream.md").unlink()
    assert stale(tmp_path) == ["requirements.md", "upstream.md"]
