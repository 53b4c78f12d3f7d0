"""Reads the pages in docs/features: the files that they show, the commands, and what these print. The test of the pages runs them.

A yaml block that begins with `# NAME.yaml` is a file of that name. In a console block a line after `$ ` is a command, and the lines below
it are what it prints; there `…` stands for any text within a line, and alone on a line for any lines. How many blanks there are says
nothing. The first command of a page is `dra-testbed up`, which makes the testbed that the page is about; pages that want the same one share
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "features"
_BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([-\w]+\.yaml)\n")
_UP = "dra-testbed up"
_ANY = "…"
_NODE = "node-1"


@dataclass(frozen=True)
class Step:
    """A command, and what it prints."""

    command: str
    prints: tuple[str, ...]

    def is_as_shown(self, printed: str) -> bool:
        """Whether what it printed is what the page shows."""
        pattern = "".join(_pattern(line) for line in self.prints)
        return re.fullmatch(pattern, "".join(f"{_squeezed(line)}\n" for line in printed.splitlines())) is not None


@dataclass(frozen=True)
class Page:
    """One page: the words of its `dra-testbed up`, its files by name, and its commands after the first."""

    name: str
    up: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]

    def with_node(self, name: str) -> Page:
        """What a reader makes of it whose node has another name than the pages' node-1."""
        files = tuple((file, content.replace(_NODE, name)) for file, content in self.files)
        steps = tuple(
            Step(step.command.replace(_NODE, name), tuple(line.replace(_NODE, name) for line in step.prints))
            for step in self.steps
        )
        return Page(self.name, self.up, files, steps)


def pages() -> list[Page]:
    """All of them; index.md only lists them."""
    return [read(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"]


def read(name: str, text: str) -> Page:
    """The page in a text."""
    blocks = _BLOCK.findall(text)
    files = tuple((_named(name, content), content) for kind, content in blocks if kind == "yaml")
    first, *steps = [step for kind, content in blocks if kind == "console" for step in _steps(name, content)]
    if not first.command.startswith(_UP):
        raise ValueError(f"{name}: the first command is {first.command!r}, but must be {_UP}")
    return Page(name, tuple(first.command.removeprefix(_UP).split()), files, tuple(steps))


def _named(page: str, content: str) -> str:
    found = _NAME.match(content)
    if not found:
        raise ValueError(f"{page}: a yaml block begins with {content[:40]!r}, but must begin with # NAME.yaml")
    return found[1]


def _steps(page: str, content: str) -> list[Step]:
    before, *parts = re.split(r"^\$ ", content, flags=re.MULTILINE)
    if before:
        raise ValueError(f"{page}: a console block begins with {before[:40]!r}, but must begin with a command")
    lines = [part.splitlines() for part in parts]
    return [Step(command, tuple(printed)) for command, *printed in lines]


def _pattern(line: str) -> str:
    if line.strip() == _ANY:
        return r"(?:[^\n]*\n)*"
    return "[^\n]+".join(map(re.escape, _squeezed(line).split(_ANY))) + "\n"


def _squeezed(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
