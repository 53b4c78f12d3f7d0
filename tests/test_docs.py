"""Checks of the documentation as a whole: links between pages, their anchors, and paths of the repository."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "ci").rglob("*.md")])
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:ci|docs|fake_driver|manifests|suites|testbed|tests)/[\w./-]*)`")
_SCRIPT = re.compile(r"`([\w-]+\.(?:py|sh))`")
_TEST = re.compile(r"`'?((?:suites|tests)/[\w/]+\.py)::(\w+)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return _FENCED.sub("", page.read_text())


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of the headings in a text."""
    found: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(text):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return names


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page whose file or anchor does not exist."""
    links = [link for link in _LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]
    return [link for link in links if not _exists(page, link)]


def _files_named(name: str) -> Iterator[Path]:
    for folder in ("ci", "fake_driver", "testbed", "tests"):
        yield from (ROOT / folder).rglob(name)


def _exists(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(prose(target)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_and_anchors_exist(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_the_repository_exist(page: Path) -> None:
    assert [path for path in _PATH.findall(prose(page)) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_without_a_path_exist_somewhere(page: Path) -> None:
    assert [name for name in _SCRIPT.findall(prose(page)) if not any(_files_named(name))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page: Path) -> None:
    named = _TEST.findall(prose(page))

    assert [test for file, test in named if f"def {test}(" not in (ROOT / file).read_text()] == []


def test_a_missing_file_and_a_missing_anchor_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `word`\n[a](#one-word) [b](other.md) [c](#two) [d](https://example.com) [e](page.md#one-word)\n"
    )

    assert broken_links(page) == ["other.md", "#two"]


def test_links_in_code_blocks_are_not_checked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\n[a](missing.md)\n```\n")

    assert broken_links(page) == []


def test_repeated_headings_get_numbered_anchors() -> None:
    assert anchors("# A\n## A\n") == {"a", "a-1"}
