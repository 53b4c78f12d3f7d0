"""Errors have a message, a hint, and the exit code of their class."""

from __future__ import annotations

import pytest

from testbed.errors import (
    ApiError,
    CommandFailed,
    DriverFailed,
    Incomplete,
    NothingToJudge,
    TestbedError,
    UsageError,
    WaitTimeout,
    did_you_mean,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TestbedError("x"), 3),
        (UsageError("x"), 2),
        (CommandFailed(["x"], "exit 1", ""), 3),
        (WaitTimeout("x", "y", "z"), 3),
        (ApiError("GET /", 500, "x", "y"), 3),
        (DriverFailed("x"), 1),
        (Incomplete("x"), 4),
        (NothingToJudge("x"), 4),
    ],
)
def test_each_family_has_its_exit_code(error: TestbedError, code: int) -> None:
    assert error.exit_code == code


def test_a_failed_command_shows_a_pasteable_command_line_and_the_end_of_its_output() -> None:
    output = "\n".join(f"line {number}" for number in range(30))

    text = str(CommandFailed(["ls", "a b"], "exit 2", output, hint="look"))

    assert "ls 'a b'" in text
    assert "line 29" in text
    assert "line 9\n" not in text
    assert text.endswith("try: look")


@pytest.mark.parametrize("output", ["tar: x: No space left on device", "ctr: write /x: no space left on device"])
def test_the_hint_for_a_full_disk_replaces_other_hints(output: str) -> None:
    failed = CommandFailed(["ctr"], "exit 1", output, hint="look")
    assert failed.disk_full
    assert failed.hint == "free disk space, or move DRA_TESTBED_CACHE and DRA_TESTBED_STATE"
    assert not CommandFailed(["ctr"], "exit 1", "no").disk_full


def test_deprecation_warnings_do_not_hide_why_a_command_failed() -> None:
    noise = 'time="2026-01-01T00:00:00Z" level=warning msg="DEPRECATION: The `x` property is deprecated"'
    text = str(CommandFailed(["ctr"], "exit 1", "\n".join(["why", *[noise] * 30])))
    assert "    why" in text
    assert "DEPRECATION" not in text


def test_the_error_says_that_a_command_printed_no_output() -> None:
    assert "(no output)" in str(CommandFailed(["true"], "exit 1", "\n"))


def test_a_timeout_reports_the_last_observation() -> None:
    assert "last seen: Pending" in str(WaitTimeout("pod to run", "start: 5 s", "Pending"))


def test_an_api_error_without_a_response_has_no_status_in_its_text() -> None:
    assert str(ApiError("GET /x", 0, "", "no answer")) == "GET /x: no answer"
    assert str(ApiError("GET /x", 404, "NotFound", "no x")) == "GET /x: 404 NotFound: no x"


def test_the_closest_word_is_suggested() -> None:
    assert did_you_mean("nodez", ["nodes", "name"]) == "did you mean nodes?"


def test_a_few_words_are_all_suggested_if_none_is_close() -> None:
    assert did_you_mean("zzz", ["nodes", "name"]) == "known: name, nodes"


def test_many_words_are_not_listed() -> None:
    assert did_you_mean("zzz", [f"word{number}" for number in range(20)]) == ""


def test_nothing_is_suggested_if_no_word_is_known() -> None:
    assert did_you_mean("zzz", []) == ""
