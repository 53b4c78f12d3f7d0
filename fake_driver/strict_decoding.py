"""Strict decoding of YAML files and requests: unknown keys, missing keys, duplicate keys and wrong types are problems with a path.

All problems of a document are collected, so that its author sees them at once. Used for hardware files, opaque configuration and control.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import yaml

from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.name_patterns import matches

T = TypeVar("T")
_MAX_LINE = 1024


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses duplicate keys, and aliases: a few of them can expand to gigabytes, or contain themselves."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; raise ComposerError if it is an alias."""
        if self.check_event(yaml.AliasEvent):
            alias: Any = self.get_event()  # type: ignore[no-untyped-call]  # untyped in the stubs
            raise yaml.composer.ComposerError(
                None, None, f"*{alias.anchor} is an alias; write it out", alias.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping; raise ConstructorError if one of its keys is a duplicate."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key if isinstance(key, Hashable) else id(key))
        return super().construct_mapping(node, deep)


def load(text: str, name: str) -> Any:
    """Return the only document in a YAML text; raise ConfigurationError, with `name` in it, if the text is not valid YAML."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader with one more check
    except (yaml.YAMLError, ValueError, RecursionError) as invalid:
        raise ConfigurationError(f"{name} is not YAML: {invalid}") from invalid


def with_lines(problems: Iterable[str], text: str) -> list[str]:
    """Return the problems of a YAML text without duplicates, with and in the order of their line numbers.

    A missing key has the line of the mapping in which it is missing.
    """
    lines = dict(_lines(yaml.compose(text, Loader=_Loader), ""))
    numbered = [(_line(problem, lines), problem) for problem in dict.fromkeys(problems)]
    return [f"line {line}: {problem}" for line, problem in sorted(numbered, key=lambda each: each[0])]


def _line(problem: str, lines: dict[str, int]) -> int:
    above = [path for path in lines if problem.startswith((f"{path} ", f"{path}.", f"{path}["))]
    return lines[max(above, key=len)] if above else 1


def _lines(node: yaml.Node | None, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path of each key and each item, in the form that problems use, and its line."""
    if isinstance(node, yaml.MappingNode):
        below = [(".".join(part for part in (path, str(key.value)) if part), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        below = [(f"{path}[{index}]", item, item) for index, item in enumerate(node.value)]
    else:
        return
    for inner_path, start, inner in below:
        yield inner_path, start.start_mark.line + 1
        yield from _lines(inner, inner_path)


class Section:
    """A mapping in a document. Callers read it key by key and then call `check_unknown_keys()`; problems are added to a shared list."""

    def __init__(self, path: str, content: object, problems: list[str]) -> None:
        self.path, self.problems = path, problems
        self.content: dict[Any, Any] = content if isinstance(content, dict) else {}
        self.known_keys: set[str] = set()
        if not isinstance(content, dict):
            self.add_problem("", f"is {_type_name(content)}, but must be a mapping")

    def add_problem(self, key: str, text: str) -> None:
        """Add a problem with a key; with an empty key, of the whole section."""
        path = ".".join(part for part in (self.path, key) if part)
        self.problems.append(f"{path or 'the document'} {text}")

    def get(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        """Return the value of a key. If it has the wrong type, or is missing without a default, add a problem and return the default."""
        self.known_keys.add(key)
        if key not in self.content:
            if default is None:
                self.add_problem(key, "is missing")
            return default
        value = self.content[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.add_problem(key, f"is {_type_name(value)}, but must be {_TYPE_NAMES.get(kind, kind.__name__)}")
            return default
        return value

    def matching(self, key: str, pattern: re.Pattern[str], what: str) -> str:
        """Return a string and add a problem if it does not match the pattern; return '' if it is missing."""
        value = self.get(key, str)
        if value is not None and not matches(pattern, value):
            self.add_problem(key, f"is {value!r}, but must be {what}")
        return value or ""

    def printable_line(self, key: str) -> str:
        """Return a printable string that is short enough for a pod's status; '' if it is missing."""
        value = self.get(key, str, "") or ""
        if len(value) > _MAX_LINE or not value.isprintable():
            self.add_problem(key, f"must be printable and have at most {_MAX_LINE} characters")
        return value

    def constant(self, key: str, expected: str) -> None:
        """Add a problem unless the key has the expected value."""
        value = self.get(key, str)
        if value is not None and value != expected:
            hint = suggestion(value, [expected])
            self.add_problem(
                key, f"is {value!r}, but must be {expected!r}" + (f"; {hint}" if hint.startswith("did") else "")
            )

    def section(self, key: str) -> Section:
        """Return the mapping under a key."""
        return Section(".".join(part for part in (self.path, key) if part), self.get(key, dict) or {}, self.problems)

    def sections(self, key: str) -> list[Section]:
        """Return the mappings in the list under a key; an empty list if the key is missing."""
        items = self.get(key, list, []) or []
        return [Section(f"{self.path}.{key}[{index}]", item, self.problems) for index, item in enumerate(items)]

    def check_unknown_keys(self) -> None:
        """Add a problem for each key that was never read."""
        for key in self.content:
            if key not in self.known_keys:
                self.add_problem(str(key), f"is unknown; {suggestion(str(key), self.known_keys)}")


def raise_if_invalid(request: Section) -> None:
    """Raise ConfigurationError with all problems of a request that changes a running driver, if there are any."""
    if request.problems:
        raise ConfigurationError("nothing was changed: " + "; ".join(dict.fromkeys(request.problems)))


_TYPE_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "a boolean",
    dict: "a mapping",
    list: "a list",
}


def _type_name(value: object) -> str:
    return "empty" if value is None else _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")
