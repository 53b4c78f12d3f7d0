"""The project as a whole: its files are consistent, and its modules follow the rules of the design."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import testbed

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("testbed", "fake_driver", "suites")
PROJECT_FILES = {"pyproject.toml", "README.md", "tox.ini", "testbed", "fake_driver", "suites", "manifests", "ci"}
SOURCES = (*PACKAGES, "ci", "tests")
MAX_MODULES = 16  # in a folder
COMMON_FILES = {"tests", "docs", "LICENSE", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"}


def modules() -> list[Path]:
    found = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return [file.relative_to(ROOT) for file in found if "stubs" not in file.parts]


def dependencies() -> set[str]:
    return {re.split(r"[<>=!~ ;\[]", line)[0].lower() for line in PROJECT["project"]["dependencies"]}


def imported(file: Path) -> set[str]:
    """Return the top-level names that a module imports, including those for type checkers."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_the_version_is_the_same_everywhere() -> None:
    assert testbed.__version__ == PROJECT["project"]["version"]


def test_the_changelog_has_an_entry_for_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()

    assert f"## [{testbed.__version__}]" in text


def test_the_page_on_dependencies_has_a_reason_for_each_of_them() -> None:
    rows = re.findall(r"^\| ([\w-]+) \| (.+) \| (.+) \|$", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE)
    explained = {name: reasons for name, *reasons in rows if name != "dependency"}

    assert set(explained) == dependencies()
    assert all(len(reason) > 10 for reasons in explained.values() for reason in reasons)


def test_every_dependency_is_used() -> None:
    names = {"grpcio": "grpc", "pyyaml": "yaml"}
    elsewhere = {"protobuf", "pytest-timeout", "pytest-xdist"}  # by the generated stubs, and by pytest
    used = set().union(*(imported(file) for file in modules()))

    assert {name for name in dependencies() - elsewhere if names.get(name, name) not in used} == set()


def test_the_top_level_has_no_other_files() -> None:
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split() if "*" not in line}
    names = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}

    assert (
        names - ignored - PROJECT_FILES - COMMON_FILES - {path.name for path in ROOT.glob("dra-testbed-report*")}
        == set()
    )


def test_no_module_is_named_utils_or_helpers() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}

    assert [str(file) for file in modules() if vague & {part.removesuffix(".py") for part in file.parts}] == []


def test_no_folder_has_too_many_modules() -> None:
    special = {"__init__.py", "conftest.py"}
    files = (file for top in SOURCES for file in (ROOT / top).rglob("*.py") if file.name not in special)
    counts = Counter(str(file.parent.relative_to(ROOT)) for file in files)

    assert len(counts) > 20
    assert {folder: number for folder, number in counts.items() if number > MAX_MODULES} == {}


@pytest.mark.parametrize("file", modules(), ids=str)
def test_a_module_is_short_and_has_a_docstring(file: Path) -> None:
    text = (ROOT / file).read_text()

    assert len(text.splitlines()) < 400
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize(
    "file", [file for file in modules() if str(file) not in {"testbed/process.py", "testbed/waiting.py"}], ids=str
)
def test_only_process_and_waiting_use_subprocess(file: Path) -> None:
    assert "subprocess" not in imported(file)
