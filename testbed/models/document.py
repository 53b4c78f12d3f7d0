"""One YAML document as plain data that still knows its lines; `strict` reads files with it.

Stricter than YAML: a key that is there twice or is no text, an empty value, a tag, and an alias of a mapping or list are problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import UsageError

Location = tuple[str | int, ...]
_LARGEST = 1_000_000
_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "str")}
_TEXT = {f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "merge")}


@dataclass(frozen=True)
class Problem:
    """Something wrong in a file, and on which line."""

    line: int
    path: str
    what: str


@dataclass(frozen=True)
class Document:
    """The content of a file; for each place in it the line and, of scalars, the text as it was written."""

    path: Path
    content: Any
    lines: Mapping[Location, int] = field(default_factory=dict)
    written: Mapping[Location, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def line(self, place: Location) -> int:
        """The line of a place, or of the nearest one around it that is in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read(path: Path) -> Document:
    """The one document in a file."""
    return parse(_text(path), path)


def parse(text: str, path: Path) -> Document:
    """The one document in a text; `path` is for the errors."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as broken:
        mark = getattr(broken, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        what = getattr(broken, "problem", None) or getattr(broken, "reason", None) or "it is nested too deeply"
        raise UsageError(f"{where}: this is not YAML: {what}") from broken
    if node is None:
        raise UsageError(f"{path} is empty")
    walk = _Converter()
    content = walk.value(node, ())
    return Document(path, content, walk.lines, walk.written, tuple(walk.problems))


def format_location(place: Location) -> str:
    """A place as people write it: spec.install.manifests[0]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.lstrip(".")


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} has more than {_LARGEST} bytes; is it the right file?")
        return path.read_text(encoding="utf-8")
    except OSError as refused:
        raise UsageError(f"cannot read {path}: {refused.strerror}") from refused
    except UnicodeDecodeError as binary:
        raise UsageError(f"{path} is not a text in UTF-8") from binary


class _Converter:
    """Turns nodes into plain values, and notes lines and problems on the way."""

    def __init__(self) -> None:
        self.lines: dict[Location, int] = {}
        self.written: dict[Location, str] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, place: Location) -> Any:
        self.lines.setdefault(place, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if id(node) in self._seen:
            return self._problem(self.lines[place], place, "is an alias; write it out")
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, place)

    def _mapping(self, node: yaml.Node, place: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if _tag(key_node) != "str":
                self._problem(_line(key_node), (*place, key), f"is a key that is no text: write {key!r} in quotes")
            elif key in content:
                first = self.lines[(*place, key)]
                self._problem(_line(key_node), (*place, key), f"is there twice, first in line {first}")
            else:
                self.lines[(*place, key)] = _line(key_node)
                content[key] = self.value(value_node, (*place, key))
        return content

    def _scalar(self, node: yaml.ScalarNode, place: Location) -> Any:
        self.written[place] = node.value
        if node.tag.endswith(":null"):
            return self._problem(_line(node), place, "is empty; give it a value, or take the key out")
        if node.tag in _TEXT:
            return node.value
        if node.tag not in _PLAIN:
            return self._problem(_line(node), place, f"has the tag {node.tag}; tags are not known here")
        try:
            return self._scalars.construct_object(node)
        except ValueError as bad:
            return self._problem(_line(node), place, f"is not a value: {bad}")

    def _problem(self, line: int, place: Location, what: str) -> None:
        self.problems.append(Problem(line, format_location(place), what))


def _tag(node: yaml.Node) -> str:
    return "str" if node.tag in _TEXT else str(node.tag).rpartition(":")[2]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
