"""The digest of what a test does, which decides whether a result in docs/mutants.md is fresh. Used by the rest of ci.mutants. Pure.

It covers the syntax tree of the test and the parsed manifests. It does not cover the requirement (sentence, source, mutants), docstrings,
comments and formatting, so rewording a requirement does not invalidate its results.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import jinja2
import yaml

from testbed import folders
from testbed.conformance.catalogue import Entry

_TEMPLATES = jinja2.Environment(autoescape=False)  # noqa: S701 - templates are only split into tokens here
_RESOLVER: Any = yaml.SafeLoader("")
_EXPRESSION = "jinja-"


def digest(entry: Entry) -> str:
    """Return eight hexadecimal digits that change with the code of a test and with the values in its manifests."""
    manifests = folders.data("manifests") / "suites"
    values = [manifest_values((manifests / name).read_text(encoding="utf-8")) for name in entry.manifests]
    content = json.dumps([test_code(entry.source), *values])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def test_code(source: str) -> str:
    """Return the code of a test without its @requirement decorator, docstrings, comments and formatting."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = [each for each in node.decorator_list if not _is_requirement(each)]
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)  # not ast.dump: its output differs from one Python version to the next


def manifest_values(template: str) -> list[list[str]]:
    """Return what a manifest says, in its order: the YAML events with their values, and the statements of the template between them."""
    text, statements = _without_template(template)
    found = [(position, ["statement", statement]) for position, statement in statements]
    found += [(_position(event), _event_values(event)) for event in yaml.parse(text, Loader=yaml.SafeLoader)]
    return [values for _, values in sorted(found, key=lambda each: each[0])]


def _is_requirement(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] == "requirement"


def _position(event: yaml.Event) -> int:
    return event.start_mark.index if event.start_mark else 0


def _event_values(event: yaml.Event) -> list[str]:
    """Return an event's type and values; quotes count only where they decide about the type of a value."""
    values = [str(getattr(event, name)) for name in ("anchor", "tag") if getattr(event, name, None)]
    if isinstance(event, yaml.ScalarEvent):
        has_expression = _EXPRESSION in event.value
        kind = event.implicit[0] if has_expression else _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
        values += [str(kind), event.value]
    return [type(event).__name__, *values]


def _without_template(template: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the template as YAML, with a placeholder for each expression, and the statements with their positions in it.

    An expression directly behind a colon counts as a statement: it writes YAML, not a value.
    """
    text, statements = "", list[tuple[int, str]]()
    for kind, content in _parts(template):
        if kind == "variable" and not text.endswith(":"):
            text += _EXPRESSION + content.encode().hex()
        elif kind in ("variable", "block"):
            statements.append((len(text), content))
        elif kind == "data":
            text += content
    return text, statements


def _parts(template: str) -> Iterator[tuple[str, str]]:
    """Yield `data`, `variable` (an expression), `block` (a statement) and `comment` parts, without the white space inside of braces."""
    inside: list[str] = []
    for _, kind, value in _TEMPLATES.lex(template):
        name, _, edge = kind.rpartition("_")
        if kind == "data":
            yield kind, value
        elif edge == "begin":
            inside = []
        elif edge == "end":
            yield name, " ".join(inside)
        elif kind != "whitespace":
            inside.append(value)
