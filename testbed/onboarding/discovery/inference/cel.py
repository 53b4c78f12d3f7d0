"""Parses CEL expressions, as far as selectors of DeviceClasses use them. Pure; `selectors` calls it."""

from __future__ import annotations

import re

from testbed.onboarding.discovery.inference.cel_values import (
    COMPARISONS,
    Unsupported,
    Value,
    called,
    compared,
    constant,
    decided_by,
    function,
    member,
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-<>!?:.,()\[\]]))"""
)
_CONSTANTS = {"true": True, "false": False, "null": None}


def parse(expression: str) -> Value:
    """Return a function that evaluates the expression. Raise Unsupported if it uses a part of CEL that is not known here."""
    return _Parser(expression).parse()


class _Parser:
    """A recursive descent parser. It returns a function that evaluates the expression."""

    def __init__(self, expression: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        text = expression.strip()
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found or not found.lastgroup:
                raise Unsupported(text[position:])
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            position = found.end()
        self._at = 0

    def parse(self) -> Value:
        """Return the function of the whole expression."""
        found = self._conditional()
        if self._at != len(self._tokens):
            raise Unsupported(str(self._tokens[self._at]))
        return found

    def _take(self, *signs: str) -> str:
        """Consume and return the next token if it is one of these, otherwise return ''."""
        if self._at < len(self._tokens) and self._tokens[self._at][1] in signs and self._tokens[self._at][0] != "text":
            self._at += 1
            return self._tokens[self._at - 1][1]
        return ""

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise Unsupported(f"no {sign}")

    def _conditional(self) -> Value:
        condition = self._or()
        if not self._take("?"):
            return condition
        yes = self._or()
        self._expect(":")
        no = self._conditional()
        return lambda given: yes(given) if condition(given) else no(given)

    def _or(self) -> Value:
        left = self._and()
        while self._take("||"):
            left = decided_by(left, self._and(), decisive=True)
        return left

    def _and(self) -> Value:
        left = self._comparison()
        while self._take("&&"):
            left = decided_by(left, self._comparison(), decisive=False)
        return left

    def _comparison(self) -> Value:
        left = self._unary()
        sign = self._take(*COMPARISONS, "in")
        if not sign:
            return left
        return compared(sign, left, self._unary())

    def _unary(self) -> Value:
        if self._take("!"):
            inner = self._unary()
            return lambda given: not inner(given)
        if self._take("-"):
            inner = self._unary()
            return lambda given: -inner(given)
        return self._members(self._primary())

    def _members(self, value: Value) -> Value:
        while sign := self._take(".", ".?", "[", "[?"):
            if sign in ("[", "[?"):
                key = self._conditional()
                self._expect("]")
                value = member(value, key, optional=sign == "[?")
                continue
            value = self._selected(value, optional=sign == ".?")
        return value

    def _selected(self, value: Value, *, optional: bool) -> Value:
        """Return a field or the result of a method of a value."""
        name = self._name()
        return (
            called(name, value, self._arguments())
            if self._take("(")
            else member(value, constant(name), optional=optional)
        )

    def _primary(self) -> Value:
        if self._take("("):
            inner = self._conditional()
            self._expect(")")
            return inner
        if self._take("["):
            items = self._arguments("]")
            return lambda given: [each(given) for each in items]
        if self._at == len(self._tokens):
            raise Unsupported("the expression ends early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return constant(float(text) if "." in text else int(text))
        if kind == "text":
            return constant(re.sub(r"\\(.)", r"\1", text[1:-1]))
        if kind == "name":
            return self._named(text)
        raise Unsupported(text)

    def _named(self, name: str) -> Value:
        if name in _CONSTANTS:
            return constant(_CONSTANTS[name])
        if name == "device":
            return lambda given: given["device"]
        self._expect("(")
        return function(name, self._arguments())

    def _name(self) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "name":
            raise Unsupported(text)
        self._at += 1
        return text

    def _arguments(self, end: str = ")") -> list[Value]:
        found: list[Value] = []
        while not self._take(end):
            if found:
                self._expect(",")
            found.append(self._conditional())
        return found
