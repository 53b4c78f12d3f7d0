"""Reads one YAML document as plain data with line numbers; `strict` reads files with it.

Stricter than YAML: duplicate keys, keys that are not strings, empty values, tags, and aliases of mappings or lists are problems.
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
    """One mistake in a file, with its line and the path of the key."""

    line: int
    path: str
    what: str


@dataclass(frozen=True)
class Document:
    """The content of a file, with the line of each location and the original spelling of each scalar."""

    path: Path
    content: Any
    lines: Mapping[Location, int] = field(default_factory=dict)
    written: Mapping[Location, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def line(self, location: Location) -> int:
        """Return the line of a location, or of its nearest parent that is in the file."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)


def read(path: Path) -> Document:
    """Read the only document of a file. Raise UsageError if it cannot be read or is not YAML."""
    return parse(_text(path), path)


def parse(text: str, path: Path) -> Document:
    """Parse the only document of a text; `path` is for error messages."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as broken:
        mark = getattr(broken, "problem_mark", None)
        where = f"{path}:{mark.line + 1}:" if mark else f"{path} is"
        what = getattr(broken, "problem", None) or getattr(broken, "reason", None) or "it is nested too deeply"
        raise UsageError(f"{where} not valid YAML: {what}") from broken
    if node is None:
        raise UsageError(f"{path} is empty")
    converter = _Converter()
    content = converter.value(node, ())
    return Document(path, content, converter.lines, converter.written, tuple(converter.problems))


def format_location(location: Location) -> str:
    """Return a location as users write it: spec.install.manifests[0]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.lstrip(".")


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is larger than {_LARGEST} bytes; is it the right file?")
        return path.read_text(encoding="utf-8")
    except OSError as refused:
        raise UsageError(f"cannot read {path}: {refused.strerror}") from refused
    except UnicodeDecodeError as binary:
        raise UsageError(f"{path} is not UTF-8 text") from binary


class _Converter:
    """Converts YAML nodes to plain values, and records their lines and problems."""

    def __init__(self) -> None:
        self.lines: dict[Location, int] = {}
        self.written: dict[Location, str] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, location: Location) -> Any:
        self.lines.setdefault(location, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, location)
        if id(node) in self._seen:
            return self._problem(self.lines[location], location, "is an alias; write the value out")
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*location, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, location)

    def _mapping(self, node: yaml.Node, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if _tag(key_node) != "str":
                self._problem(_line(key_node), (*location, key), f"is not a string key; write {key!r} in quotes")
            elif key in content:
                first = self.lines[(*location, key)]
                self._problem(_line(key_node), (*location, key), f"is a duplicate key, first used in line {first}")
            else:
                self.lines[(*location, key)] = _line(key_node)
                content[key] = self.value(value_node, (*location, key))
        return content

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> Any:
        self.written[location] = node.value
        if node.tag.endswith(":null"):
            return self._problem(_line(node), location, "is empty; give it a value, or remove the key")
        if node.tag in _TEXT:
            return node.value
        if node.tag not in _PLAIN:
            return self._problem(_line(node), location, f"has the tag {node.tag}; tags are not supported")
        try:
            return self._scalars.construct_object(node)
        except ValueError as bad:
            return self._problem(_line(node), location, f"is not a valid value: {bad}")

    def _problem(self, line: int, location: Location, what: str) -> None:
        self.problems.append(Problem(line, format_location(location), what))


def _tag(node: yaml.Node) -> str:
    return "str" if node.tag in _TEXT else str(node.tag).rpartition(":")[2]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
