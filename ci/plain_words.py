"""Refuse words that make sentences hard to read: `python -m ci.plain_words`, a part of `tox -e lint`.

It reads docstrings, comments, names of tests and string literals of Python files, Markdown pages, and the comments of YAML files and
scripts. It skips text in backticks and code blocks. For text that is quoted from a program, write `# words: REASON` behind the line
(`<!-- words: REASON -->` in Markdown).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FILES = """
testbed/**/*.py fake_driver/**/*.py suites/**/*.py ci/**/*.py tests/**/*.py
README.md CONTRIBUTING.md CHANGELOG.md docs/**/*.md ci/**/*.md
manifests/**/*.yaml suites/**/*.yaml ci/**/*.y*ml .github/**/*.yml tox.ini pyproject.toml .ci/* ci/*
"""
# Each pattern, and what to write instead. "such as", "no such file", "as it is served" and "told apart" are good English.
WORDS = r"""
nobody|somebody|whoever|he -> name the program or person
(is|are|was|were|be|been|being) told(?! apart) -> gets, learns, reads
of which -> start a new sentence
(?<!no )such(?! as\b) -> this, these, or name the thing
ha(s|ve|d) to be had -> is needed
as it is(?! [\w{`]) -> unchanged
all the same -> nevertheless, or leave it out
(goes|go|went|going) with -> belongs to, is removed with
(comes|come|came|coming) true -> happens, holds
"""  # words: the list itself
_RULES = [line.split(" -> ") for line in WORDS.strip().splitlines()]
# No match within a domain name or a word with hyphens.
_PATTERNS = {re.compile(rf"(?<![\w.-])({words})(?![\w-]|\.\w)", re.IGNORECASE): instead for words, instead in _RULES}
_EXCEPTION = re.compile(r"(#|<!--) words: \w")
_CODE = re.compile(r"^ *```.*?^ *```|`[^`]*`", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(
    r"^\| [A-Z]+-\d+ \| (caught|survived|unclear).*$", re.MULTILINE
)  # docs/mutants.md: output of a run
_COMMENT = re.compile(r"(?:^|\s)#\s(.*)|^\s*description\s*[:=](.*)")


class Text(NamedTuple):
    """A piece of text, and the first and last of its lines."""

    first: int
    last: int
    content: str


class Finding(NamedTuple):
    """A refused word, and the place where it is."""

    path: Path
    line: int
    word: str
    message: str


def files(root: Path = ROOT) -> list[Path]:
    """Return all files that are checked, relative to the root."""
    found = {file for pattern in FILES.split() for file in root.glob(pattern) if file.is_file()}
    return sorted(file.relative_to(root) for file in found if "stubs" not in file.parts)


def check(path: Path, root: Path = ROOT) -> Iterator[Finding]:
    """Yield the refused words of a file, which is given relative to the root."""
    source = (root / path).read_text(encoding="utf-8")
    lines = source.split("\n")
    if path.suffix == ".py" or lines[0].endswith("python3"):
        texts = _of_python(source, is_test=path.parts[0] == "tests")
    else:
        texts = _of_page(source) if path.suffix == ".md" else _of_comments(lines)
    for text in texts:
        if not any(_EXCEPTION.search(line) for line in lines[text.first - 1 : text.last]):
            yield from _findings(path, text)


def _findings(path: Path, text: Text) -> Iterator[Finding]:
    content = re.sub(r"\s+", " ", _without(_CODE, text.content))
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(content):
            excerpt = content[max(0, found.start() - 40) : found.end() + 40].strip()
            yield Finding(path, text.first, found[0], f"{found[0]!r} (write: {instead}): … {excerpt} …")


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Replace what a pattern matches by backticks, and keep the lines."""
    return pattern.sub(lambda found: re.sub(r"[^\n]+", "`", found[0]), text)


def _of_python(source: str, *, is_test: bool) -> Iterator[Text]:
    """Yield comments, names of tests, docstrings and, outside of tests, string literals."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.end[0], token.string)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Text(node.lineno, node.lineno, node.name.replace("_", " "))
        for child in ast.iter_child_nodes(node):
            is_read = isinstance(node, ast.Expr) or not (is_test or isinstance(node, ast.JoinedStr))
            if is_read and isinstance(child, ast.Constant | ast.JoinedStr):
                yield Text(child.lineno, child.end_lineno or child.lineno, _literal(child))


def _literal(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a literal's text, with braces for the expressions of an f-string; nothing if it is a single word."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts)
    return text if " " in text else ""


def _of_page(source: str) -> Iterator[Text]:
    """Yield the paragraphs, list items and table rows of a Markdown page, without code blocks and the output of runs."""
    lines = _without(_RESULT, _without(_CODE, source)).split("\n")
    starts = [number for number, line in enumerate(lines, 1) if re.match(r"\s*($|[|*#-]|\d+\.)", line) or number == 1]
    for first, after in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        yield Text(first, after - 1, "\n".join(lines[first - 1 : after - 1]))


def _of_comments(lines: list[str]) -> Iterator[Text]:
    """Yield the comments of a file whose comments begin with #, and the descriptions in it."""
    for number, line in enumerate(lines, 1):
        if found := _COMMENT.search(line):
            yield Text(number, number, found[1] or found[2] or "")


def main() -> int:
    """Print the refused words; return 1 if there are any."""
    found = [finding for file in files() for finding in check(file)]
    for each in found:
        print(f"{each.path}:{each.line}: {each.message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
