"""Read the files, commands and outputs in the pages of docs/features. Used by the tests of these pages.

A yaml block that begins with `# NAME.yaml` is a file of that name. In a console block a line after `$ ` is a command, and the lines below
it are its output. In the output, `…` stands for any text within a line, and alone on a line for any number of lines; the amount of
whitespace is ignored. The first command of a page is `dra-testbed up`, which creates its testbed. Pages with the same command share it.
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
    """A command and the output that the page shows."""

    command: str
    output: tuple[str, ...]

    def matches(self, printed: str) -> bool:
        """Return True if the printed text is the output that the page shows."""
        pattern = "".join(_pattern(line) for line in self.output)
        return re.fullmatch(pattern, "".join(f"{_normalized(line)}\n" for line in printed.splitlines())) is not None


@dataclass(frozen=True)
class Page:
    """One page: the arguments of its `dra-testbed up`, its files by name, and its commands after the first."""

    name: str
    up: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]

    def with_node(self, name: str) -> Page:
        """Return the page with another node name in place of node-1, as a reader would adapt it."""
        files = tuple((file, content.replace(_NODE, name)) for file, content in self.files)
        steps = tuple(
            Step(step.command.replace(_NODE, name), tuple(line.replace(_NODE, name) for line in step.output))
            for step in self.steps
        )
        return Page(self.name, self.up, files, steps)


def pages() -> list[Page]:
    """Return all pages except for index.md, which only lists them."""
    return [read(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"]


def read(name: str, text: str) -> Page:
    """Return the page with this text. Raises ValueError if a block does not follow the rules above."""
    blocks = _BLOCK.findall(text)
    files = tuple((_file_name(name, content), content) for kind, content in blocks if kind == "yaml")
    first, *steps = [step for kind, content in blocks if kind == "console" for step in _steps(name, content)]
    if not first.command.startswith(_UP):
        raise ValueError(f"{name}: the first command is {first.command!r}, but must be {_UP}")
    return Page(name, tuple(first.command.removeprefix(_UP).split()), files, tuple(steps))


def _file_name(page: str, content: str) -> str:
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
    return "[^\n]+".join(map(re.escape, _normalized(line).split(_ANY))) + "\n"


def _normalized(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
