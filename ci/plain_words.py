"""Refuse words that make sentences hard to read: `python -m ci.plain_words`, a part of `tox -e lint`. `--count` prints numbers only.

It reads docstrings, comments, names of tests and string literals of Python files, Markdown pages, and the comments of YAML files and
scripts. It skips text in backticks and code blocks. For text that is quoted from a program, write `# words: REASON` behind the line
(`<!-- words: REASON -->` in Markdown).
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ("testbed", "fake_driver", "suites", "ci", "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "ci/**/*.md", "suites/**/*.md")
COMMENTED = (
    "manifests/**/*.yaml",
    "ci/**/*.y*ml",
    "suites/**/*.yaml",
    ".github/**/*.yml",
    "tox.ini",
    "pyproject.toml",
    ".ci/*",
    "ci/*",
)
# Each pattern, and what to write instead. "such as", "no such file", "as it is served" and "told apart" are good English.
WORDS = r"""
nobody|somebody|whoever|he -> name the program or person
(is|are|was|were|be|been|being) told(?! apart) -> gets, learns, reads
of which -> start a new sentence
(?<!no )such(?! as\b) -> this, these, or name the thing
ha(s|ve|d) to be had -> is needed
as it is(?! [\w{]) -> unchanged
all the same -> nevertheless, or leave it out
(goes|go|went|going) with -> belongs to, is removed with
(comes|come|came|coming) true -> happens, holds
"""  # words: the list itself
_RULES = [tuple(line.split(" -> ")) for line in WORDS.strip().splitlines()]
# Neither a part of a word with a hyphen nor of a domain name.
_PATTERNS = [(re.compile(rf"(?<![\w.-])({words})(?![\w-]|\.\w)", re.IGNORECASE), instead) for words, instead in _RULES]
_EXCEPTION = re.compile(r"(#|<!--) words: \w")
_CODE = re.compile(r"`[^`]*`")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_SEEN = re.compile(r"^\| [A-Z]+-\d+ \| (caught|survived|unclear)")  # docs/mutants.md: what a run printed


@dataclass(frozen=True)
class Text:
    """A piece of text in a file, and the lines that it covers."""

    path: Path
    first: int
    last: int
    content: str


@dataclass(frozen=True)
class Finding:
    """A refused word."""

    path: Path
    line: int
    word: str
    instead: str
    excerpt: str

    def __str__(self) -> str:
        """Return it as a line for people."""
        return f"{self.path}:{self.line}: {self.word!r} (write: {self.instead}): … {self.excerpt} …"


def check(path: Path, root: Path = ROOT) -> Iterator[Finding]:
    """Yield the refused words of a file, which is given relative to the root."""
    source = (root / path).read_text(encoding="utf-8")
    lines = source.split("\n")
    if path.suffix == ".py" or lines[0].endswith("python3"):
        texts = _of_python(path, source)
    else:
        texts = _of_page(path, lines) if path.suffix == ".md" else _of_comments(path, lines)
    for text in texts:
        if not any(_EXCEPTION.search(line) for line in lines[text.first - 1 : text.last]):
            yield from _findings(text)


def files(root: Path = ROOT) -> list[Path]:
    """Return all files that are checked, relative to the root."""
    found = {file for folder in PYTHON for file in (root / folder).rglob("*.py") if "stubs" not in file.parts}
    found |= {file for pattern in (*PAGES, *COMMENTED) for file in root.glob(pattern) if file.is_file()}
    return sorted(file.relative_to(root) for file in found)


def _findings(text: Text) -> Iterator[Finding]:
    content = re.sub(r"\s+", " ", _CODE.sub("`…`", text.content))
    for pattern, instead in _PATTERNS:
        for found in pattern.finditer(content):
            excerpt = content[max(0, found.start() - 40) : found.end() + 40].strip()
            yield Finding(text.path, text.first, found[0], instead, excerpt)


def _of_python(path: Path, source: str) -> Iterator[Text]:
    """Yield docstrings, comments, the names of tests and, outside of tests, string literals."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.end[0], token.string)
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Text(path, node.lineno, node.lineno, node.name.replace("_", " "))
    yield from _literals(path, tree, only_docstrings=path.parts[0] == "tests")


def _literals(path: Path, node: ast.AST, *, only_docstrings: bool) -> Iterator[Text]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Constant | ast.JoinedStr):
            if isinstance(node, ast.Expr) or not only_docstrings:
                yield Text(path, each.lineno, each.end_lineno or each.lineno, _content(each))
        else:
            yield from _literals(path, each, only_docstrings=only_docstrings)


def _content(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a literal's text, with braces for the expressions of an f-string; nothing if it is a single word."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts)
    return text if " " in text else ""


def _of_page(path: Path, lines: list[str]) -> Iterator[Text]:
    """Yield the paragraphs and table rows of a Markdown page, without code blocks and recorded results."""
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), "\n".join(lines))
    paragraph, first = "", 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if not line.strip() or line.lstrip().startswith(("|", "*", "-", "#")) or line.lstrip()[:1].isdigit():
            if paragraph:
                yield Text(path, first, number - 1, paragraph)
            paragraph, first = "", number
        if not _SEEN.match(line):
            paragraph += line + "\n"
    if paragraph.strip():
        yield Text(path, first, len(lines), paragraph)


def _of_comments(path: Path, lines: list[str]) -> Iterator[Text]:
    """Yield the comments of a file whose comments begin with #, and the descriptions in it."""
    for number, line in enumerate(lines, 1):
        found = re.search(r"(^|\s)#\s(?P<comment>.*)|^\s*description\s*[:=](?P<description>.*)", line)
        if found:
            yield Text(path, number, number, found["comment"] or found["description"] or "")


def main() -> int:
    """Print what is refused, or how often; return 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m ci.plain_words", description=__doc__)
    parser.add_argument("--count", action="store_true", help="print how often, by package and by word, and exit with 0")
    options = parser.parse_args()
    found = [finding for file in files() for finding in check(file)]
    if options.count:
        for what, number in Counter("/".join(each.path.parts[:2]) for each in found).most_common():
            print(f"{number:5} {what}")
        for word, number in Counter(each.word.lower() for each in found).most_common():
            print(f"{number:5} {word}")
        print(f"{len(found):5} in all")
        return 0
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
