"""Reads YAML strictly: what is unknown, missing, twice there or of the wrong type is a problem with its path. `hardware` uses it.

All problems of a file are collected, so that its author sees them at once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import yaml

from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.name_patterns import matches

T = TypeVar("T")
_LONGEST_LINE = 1024


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that is there twice, and aliases: a few of them become gigabytes, or hold themselves."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node, unless it is an alias."""
        if self.check_event(yaml.AliasEvent):
            alias: Any = self.get_event()  # type: ignore[no-untyped-call]  # the stubs say nothing of it
            raise yaml.composer.ComposerError(
                None, None, f"*{alias.anchor} is an alias; write it out", alias.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping, unless one of its keys is there twice."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, Hashable) else id(key))
        return super().construct_mapping(node, deep)


def load(text: str, name: str) -> Any:
    """The one document in a YAML text; `name` is for the error."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader with one more check
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        raise ConfigurationError(f"{name} is not YAML: {broken}") from broken


def with_lines(problems: Iterable[str], text: str) -> list[str]:
    """The problems of a YAML text, each once, in the order of their lines and with them; what is missing has the line of what lacks it."""
    lines = dict(_lines(yaml.compose(text, Loader=_Loader), ""))
    told = [(_line(problem, lines), problem) for problem in dict.fromkeys(problems)]
    return [f"line {line}: {problem}" for line, problem in sorted(told, key=lambda each: each[0])]


def _line(problem: str, lines: dict[str, int]) -> int:
    above = [path for path in lines if problem.startswith((f"{path} ", f"{path}.", f"{path}["))]
    return lines[max(above, key=len)] if above else 1


def _lines(node: yaml.Node | None, path: str) -> Iterator[tuple[str, int]]:
    """The line of each key and each item, by its path as problems have it."""
    if isinstance(node, yaml.MappingNode):
        below = [(".".join(part for part in (path, str(key.value)) if part), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        below = [(f"{path}[{index}]", item, item) for index, item in enumerate(node.value)]
    else:
        return
    for place, start, inner in below:
        yield place, start.start_mark.line + 1
        yield from _lines(inner, place)


class Section:
    """One mapping of the document, read key by key; `done()` reports the keys that nobody asked for."""

    def __init__(self, path: str, content: object, problems: list[str]) -> None:
        self.path, self.problems = path, problems
        self.content: dict[Any, Any] = content if isinstance(content, dict) else {}
        self.known_keys: set[str] = set()
        if not isinstance(content, dict):
            self.add_problem("", f"is {_kind(content)}, but must be a mapping")

    def add_problem(self, key: str, text: str) -> None:
        """Note what is wrong with a key, or with the whole section."""
        path = ".".join(part for part in (self.path, key) if part)
        self.problems.append(f"{path or 'the document'} {text}")

    def get(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of a key; None and a problem when it is missing without a default, or of another type."""
        self.known_keys.add(key)
        if key not in self.content:
            if default is None:
                self.add_problem(key, "is missing")
            return default
        value = self.content[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.add_problem(key, f"is {_kind(value)}, but must be {_NAMES.get(kind, kind.__name__)}")
            return default
        return value

    def name(self, key: str, pattern: re.Pattern[str], what: str) -> str:
        """A text that matches; '' and a problem when it does not."""
        value = self.get(key, str)
        if value is not None and not matches(pattern, value):
            self.add_problem(key, f"is {value!r}, but must be {what}")
        return value or ""

    def printable_line(self, key: str) -> str:
        """A text that people read and a pod's status has room for; '' where there is none."""
        value = self.get(key, str, "") or ""
        if len(value) > _LONGEST_LINE or not value.isprintable():
            self.add_problem(key, f"must be printable, and have at most {_LONGEST_LINE} characters")
        return value

    def constant(self, key: str, expected: str) -> None:
        """A key that must have this one value."""
        value = self.get(key, str)
        if value is not None and value != expected:
            hint = suggestion(value, [expected])
            self.add_problem(
                key, f"is {value!r}, but must be {expected!r}" + (f"; {hint}" if hint.startswith("did") else "")
            )

    def section(self, key: str) -> Section:
        """The mapping under a key."""
        return Section(".".join(part for part in (self.path, key) if part), self.get(key, dict) or {}, self.problems)

    def sections(self, key: str) -> list[Section]:
        """The mappings in the list under a key; no key, no mappings."""
        items = self.get(key, list, []) or []
        return [Section(f"{self.path}.{key}[{index}]", item, self.problems) for index, item in enumerate(items)]

    def check_unknown_keys(self) -> None:
        """Report the keys that nobody asked for."""
        for key in self.content:
            if key not in self.known_keys:
                self.add_problem(str(key), f"is unknown; {suggestion(str(key), self.known_keys)}")


def raise_if_invalid(asked: Section) -> None:
    """ConfigurationError with all problems of a request that changes a running driver, if it has any."""
    if asked.problems:
        raise ConfigurationError("nothing was changed: " + "; ".join(dict.fromkeys(asked.problems)))


_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}


def _kind(value: object) -> str:
    return "empty" if value is None else _NAMES.get(type(value), f"a {type(value).__name__}")
