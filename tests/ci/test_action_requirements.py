"""The file that the GitHub action installs from, and what its check finds."""

from __future__ import annotations

import pytest

from ci import action_requirements
from ci.action_requirements import FILE, problems

PROJECT = """
[project]
dependencies = ["click>=8.1", "PyYAML>=6.0.2"]
[build-system]
requires = ["hatchling>=1.27"]
"""
HASHES = f"    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
LOCKED = f"# generated\nclick==8.5.1 \\\n{HASHES}hatchling==1.33.0 \\\n{HASHES}pyyaml==6.0.3 \\\n{HASHES}"


def test_our_own_file_has_everything() -> None:
    assert action_requirements.main(["--check"]) == 0


def test_a_file_with_all_requirements_is_fresh() -> None:
    assert list(problems(PROJECT, LOCKED)) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pyyaml==6.0.3", "other==6.0.3", "PyYAML is missing"),
        ("click==8.5.1", "click==8.0", "click 8.0 is locked, but pyproject.toml requires >=8.1"),
        ("click==8.5.1 \\\n" + HASHES, "click==8.5.1 \\\n", "click has no hash"),
        ("click==8.5.1 \\\n", "click>=8.5.1 \\\n", "not an exact version with hashes: click>=8.5.1 \\"),
        ("hatchling==", "-e hatchling==", "hatchling is missing"),
    ],
)
def test_what_is_not_fresh_is_a_problem(old: str, new: str, problem: str) -> None:
    assert problem in list(problems(PROJECT, LOCKED.replace(old, new)))


def test_the_hashes_of_every_locked_version_are_there() -> None:
    assert FILE.read_text().count("--hash=sha256:") > FILE.read_text().count("==")
