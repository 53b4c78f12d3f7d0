"""The last line of CI's output: how many tests ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.check_workflows import ROOT
from testbed import process

PROGRAM = ROOT / "ci/count_tests.py"
Junit = Callable[..., None]


@pytest.fixture
def junit(tmp_path: Path) -> Junit:
    """Return a function that writes a JUnit file below the folder of tox."""

    def write(name: str, *, tests: int, failures: int = 0, skipped: int = 0) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'<testsuites><testsuite tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"/></testsuites>'
        )

    return write


def count(folder: Path) -> tuple[int, str]:
    """Return the exit code and the last line of the program."""
    ended = process.run([sys.executable, PROGRAM, folder], check=False)
    return ended.code, ended.stdout.splitlines()[-1]


def test_the_tests_of_all_environments_are_added(tmp_path: Path, junit: Junit) -> None:
    junit("unit/tmp/junit.xml", tests=5, skipped=1)
    junit("e2e/tmp/report/junit.xml", tests=3)
    assert count(tmp_path) == (0, "7 passed, 0 failed, 1 skipped")


def test_a_failed_test_fails_ci(tmp_path: Path, junit: Junit) -> None:
    junit("cluster/tmp/junit.xml", tests=5, failures=2)
    assert count(tmp_path) == (1, "3 passed, 2 failed, 0 skipped")


def test_a_mutant_that_fails_as_it_must_is_not_counted(tmp_path: Path, junit: Junit) -> None:
    junit("unit/tmp/junit.xml", tests=5)
    junit("mutants-so-far/pairs/lost-changes-no-env/report/junit.xml", tests=1, failures=1)
    assert count(tmp_path) == (0, "5 passed, 0 failed, 0 skipped")


def test_no_test_at_all_fails_ci(tmp_path: Path) -> None:
    assert count(tmp_path) == (1, "0 passed, 0 failed, 0 skipped")
