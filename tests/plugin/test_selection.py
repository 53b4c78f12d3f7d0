"""Requirements of the catalogue that are not selected are in the report as excluded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.fakes.cluster import vendor_file

Judge = Callable[..., Any]
_TWO = "@required(1)\ndef test_one():\n    pass\n\n@required(2)\ndef test_two():\n    pass\n"
_CASES = """
@required(1)
@pytest.mark.parametrize("x", [1, 2], ids=["good", "bad"])
def test_many(x):
    assert x == 1
"""
_OTHER = """
from testbed.conformance import requirement, MUST, E2E

@requirement("T-009", "It works too.", level=MUST, tier=E2E, source="here")
def test_other():
    pass
"""


def _another_file(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("other")
    (folder / "test_other.py").write_text(_OTHER)


@pytest.mark.parametrize(
    ("words", "excluded"),
    [
        (("suites", "-k", "test_one"), {"T-002", "T-009"}),
        (("suites", "-k", "test_one", "-n", "1"), {"T-002", "T-009"}),
        (("suites/claims",), {"T-001", "T-002"}),
        ((".", "-k", "test_other"), {"T-001", "T-002"}),
    ],
)
def test_other_suites_than_the_installed_ones_are_the_whole_catalogue(
    judge: Judge, pytester: pytest.Pytester, words: tuple[str, ...], excluded: set[str]
) -> None:
    run = _on_other_suites(judge, pytester, *words)
    assert {row for row, verdict in run.verdicts.items() if verdict == "excluded"} == excluded
    assert run.report.result == "partial"


def test_naming_whole_suites_is_not_a_selection(judge: Judge, pytester: pytest.Pytester) -> None:
    assert _on_other_suites(judge, pytester, "suites").report.profile == "core"
    assert _on_other_suites(judge, pytester, "suites/claims").report.profile == "full"


@pytest.mark.parametrize(
    "words", [("-k", "not bad"), ("-k", "not bad", "-n", "1"), ("test_suite.py::test_many[good]",)]
)
def test_a_requirement_with_a_deselected_case_is_excluded(judge: Judge, words: tuple[str, ...]) -> None:
    run = judge(_CASES, *words)
    assert run.verdicts == {"T-001": "excluded"}
    assert run.row("T-001").message == "passed, but some of its cases were not selected: 1"
    assert (run.report.result, run.result.ret) == ("partial", 0)


def test_deselected_tests_of_foreign_suites_are_excluded_even_whole_files(
    judge: Judge, pytester: pytest.Pytester
) -> None:
    _another_file(pytester)
    run = judge(_TWO, "-k", "test_one")
    assert run.verdicts == {"T-001": "pass", "T-002": "excluded", "T-009": "excluded"}
    assert judge(_TWO).report.result == "conformant"


@pytest.mark.parametrize("words", [("-k", "T-001"), ("-k", "t-001"), ("-k", "T-001", "-n", "1")])
def test_the_id_of_a_requirement_selects_no_other_that_contains_it(judge: Judge, words: tuple[str, ...]) -> None:
    longer = '@requirement("PART-001", "It works.", level=MUST, tier=E2E, source="here")\ndef test_parts():\n    pass\n'
    assert judge(f"{_TWO}\n{longer}", *words).verdicts == {"T-001": "pass", "T-002": "excluded", "PART-001": "excluded"}


def test_a_part_of_an_id_selects_all_that_contain_it(judge: Judge) -> None:
    assert judge(_TWO, "-k", "T-00").verdicts == {"T-001": "pass", "T-002": "pass"}


def _on_other_suites(judge: Judge, pytester: pytest.Pytester, *words: str) -> Any:
    suites = pytester.path / "suites"
    (suites / "claims").mkdir(parents=True, exist_ok=True)
    (suites / "upstream.yaml").touch()
    (suites / "claims/test_other.py").write_text(_OTHER)
    judge(_TWO, "--collect-only")  # writes the file
    (pytester.path / "test_suite.py").rename(suites / "test_ours.py")
    return judge("", *words)


def test_only_what_failed_in_an_earlier_report_is_repeated(judge: Judge) -> None:
    tests = "@required(1)\ndef test_a():\n    pass\n\n@required(2)\ndef test_b():\n    assert {}\n"
    assert judge(tests.format(0)).verdicts == {"T-001": "pass", "T-002": "fail"}
    again = judge(tests.format(1), "--failed", "out")
    assert again.verdicts == {"T-001": "excluded", "T-002": "pass"}
    assert (again.report.result, again.result.ret) == ("partial", 0)


def test_failures_in_the_report_of_another_driver_are_not_repeated(judge: Judge, pytester: pytest.Pytester) -> None:
    tests = "@required(1)\ndef test_a():\n    assert 0\n"
    earlier = judge(tests).report.model_copy(deep=True).model_dump(mode="json", by_alias=True)
    earlier["subject"]["driver"] = "other.example"
    (pytester.path / "earlier.yaml").write_text(yaml.safe_dump(earlier))
    refused = judge(tests, "--failed", "earlier.yaml")
    assert refused.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "earlier.yaml is about the driver other.example" in refused.output


def test_the_suites_do_not_run_with_a_python_that_ignores_assertions(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    run = judge("@required(1)\ndef test_a():\n    assert 0\n", in_subprocess=True)
    assert run.result.ret == 2
    assert "this Python ignores assertions" in run.output


@pytest.mark.parametrize(("flags", "code"), [((), 1), (("--known",), 0)])
def test_known_failures_of_the_driver_file_can_be_ignored(
    judge: Judge, pytester: pytest.Pytester, flags: tuple[str, ...], code: int
) -> None:
    known = "  known:\n  - {id: T-001, reason: the pool is ignored, until: 2999-01-01}\n"
    (pytester.path / "vendor.yaml").write_text(vendor_file() + known)
    run = judge("@required(1)\ndef test_it():\n    assert 0\n", "--driver", "vendor.yaml", *flags)
    assert (run.report.result, run.result.ret) == ("failed", code)
    assert "known: the pool is ignored, until 2999-01-01" in run.output
