"""The part of GitHub's expression language that our workflows use: what stands in `${{ … }}` and behind `if:`. For run_workflow.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[A-Za-z_][\w.-]*|\|\||&&|==|!=|[!(),])")
_BLANK = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_STATUS = re.compile(r"\b(always|success|failure|cancelled)\(")


class Unknown(Exception):
    """Something of GitHub's language that our workflows do not use, or should not."""


def fill(template: object, context: Mapping[str, Any]) -> str:
    """Text with its `${{ … }}` filled in."""
    return _BLANK.sub(lambda found: text_of(evaluate(found[1], context)), text_of(template))


def holds(condition: object, context: Mapping[str, Any], *, failed: bool) -> bool:
    """Whether a step with this `if:` is run; one that does not speak of success or failure needs success."""
    text = text_of(condition).strip().removeprefix("${{").removesuffix("}}")
    value = evaluate(text, context, failed=failed)
    return bool(value) and (bool(_STATUS.search(text)) or not failed)


def evaluate(expression: str, context: Mapping[str, Any], *, failed: bool = False) -> Any:
    """The value of an expression: names, text, `!`, `==`, `!=`, `&&`, `||` and a few functions. A name that nobody knows is ''."""
    tokens, position = [], 0
    while expression[position:].strip():
        found = _TOKEN.match(expression, position)
        if not found:
            raise Unknown(f"cannot read {expression[position:]!r} of {expression.strip()!r}")
        tokens.append(found[1])
        position = found.end()
    reader = _Reader(tokens, context, failed=failed)
    value = reader.either()
    if reader.tokens:
        raise Unknown(f"cannot read {' '.join(reader.tokens)!r} of {expression.strip()!r}")
    return value


def text_of(value: object) -> str:
    """A value as GitHub writes it into text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Reader:
    """Takes tokens from the front; one method for each strength of binding, the loosest first."""

    def __init__(self, tokens: list[str], context: Mapping[str, Any], *, failed: bool) -> None:
        self.tokens, self._context = tokens, context
        self._functions = {
            "always": True,
            "success": not failed,
            "failure": failed,
            "cancelled": False,
            "hashFiles": "",
        }

    def either(self) -> Any:
        value = self._both()
        while self._took("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._same()
        while self._took("&&"):
            other = self._same()
            value = value and other
        return value

    def _same(self) -> Any:
        value = self._single()
        for sign, wanted in (("==", True), ("!=", False)):
            if self._took(sign):
                return (text_of(value).lower() == text_of(self._single()).lower()) is wanted
        return value

    def _single(self) -> Any:
        if self._took("!"):
            return not self._single()
        if self._took("("):
            value = self.either()
            self._need(")")
            return value
        first = self.tokens.pop(0) if self.tokens else ""
        if first.startswith("'"):
            return first[1:-1].replace("''", "'")
        if not re.match("[A-Za-z_]", first):
            raise Unknown(f"a value is missing before {first!r}")
        return self._call(first) if self._took("(") else self._named(first)

    def _call(self, name: str) -> Any:
        if name not in self._functions:
            raise Unknown(f"there is no function {name}()")
        while not self._took(")"):
            self.either()
            _ = self._took(",")
        return self._functions[name]

    def _named(self, path: str) -> Any:
        if path in ("true", "false"):
            return path == "true"
        value: Any = self._context
        for word in path.split("."):
            value = value.get(word, "") if isinstance(value, Mapping) else ""
        return value

    def _took(self, sign: str) -> bool:
        if self.tokens[:1] != [sign]:
            return False
        del self.tokens[0]
        return True

    def _need(self, sign: str) -> None:
        if not self._took(sign):
            raise Unknown(f"{sign} is missing")
