"""The project as a whole: what its files say about each other, and the manners of its modules."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import testbed

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("testbed", "fake_driver", "suites")
GIVEN = {"pyproject.toml", "README.md", "tox.ini", "testbed", "fake_driver", "suites", "manifests", "ci"}
USUAL = {"tests", "docs", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"}


def modules() -> list[Path]:
    found = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return [file.relative_to(ROOT) for file in found if "stubs" not in file.parts]


def dependencies() -> set[str]:
    return {re.split(r"[<>=!~ ;\[]", line)[0].lower() for line in PROJECT["project"]["dependencies"]}


def imported(file: Path) -> set[str]:
    """The top-level names that a module imports, those for type checkers included."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_the_version_is_the_same_everywhere() -> None:
    assert testbed.__version__ == PROJECT["project"]["version"]


def test_the_changelog_knows_the_version_or_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()

    assert "## [Unreleased]" in text or f"## [{testbed.__version__}]" in text


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    rows = re.findall(r"^\| ([\w-]+) \| (.+) \| (.+) \|$", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE)
    told = {name: reasons for name, *reasons in rows if name != "dependency"}

    assert set(told) == dependencies()
    assert all(len(reason) > 10 for reasons in told.values() for reason in reasons)


def test_every_dependency_is_used() -> None:
    names = {"grpcio": "grpc", "pyyaml": "yaml"}
    elsewhere = {"protobuf", "pytest-timeout", "pytest-xdist"}  # by the generated stubs, and by pytest
    used = set().union(*(imported(file) for file in modules()))

    assert {name for name in dependencies() - elsewhere if names.get(name, name) not in used} == set()


def test_the_top_level_holds_only_what_was_agreed() -> None:
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split() if "*" not in line}
    there = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}

    assert there - ignored - GIVEN - USUAL - {path.name for path in ROOT.glob("dra-testbed-report*")} == set()


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}

    assert [str(file) for file in modules() if drawers & {part.removesuffix(".py") for part in file.parts}] == []


@pytest.mark.parametrize("file", modules(), ids=str)
def test_a_module_is_short_and_says_what_it_is(file: Path) -> None:
    text = (ROOT / file).read_text()

    assert len(text.splitlines()) < 400
    assert ast.get_docstring(ast.parse(text)), "it has no docstring"


@pytest.mark.parametrize(
    "file", [file for file in modules() if str(file) not in {"testbed/process.py", "testbed/waiting.py"}], ids=str
)
def test_only_the_floor_starts_programs(file: Path) -> None:
    assert "subprocess" not in imported(file)
