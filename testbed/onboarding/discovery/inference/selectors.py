"""Evaluates CEL selectors of DeviceClasses for devices of ResourceSlices, as far as this module knows CEL. Pure.

The scheduler decides which devices a class selects; this only suggests classes for a driver file, which is checked in a cluster later.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.driver.quantities import amount

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-<>!?:.,()\[\]]))"""
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None}


class Unsupported(Exception):
    """An expression uses a part of CEL that this module does not know."""


class _EvaluationError(Exception):
    """The evaluation of an expression fails for a device, for example because it lacks an attribute."""


Value = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class _Optional:
    value: Any = None
    is_set: bool = False


def selects(device_class: Object, driver: str, device: Object) -> bool | None:
    """Return True if all selectors of a class match a driver's device; None if this module does not know a part of one."""
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    try:
        return all(_matches(str((each.get("cel") or {}).get("expression", "")), driver, device) for each in selectors)
    except Unsupported:
        return None


def _matches(expression: str, driver: str, device: Object) -> bool:
    evaluate = _Parser(expression).parse()
    try:
        return evaluate({"device": _variables(driver, device)}) is True
    except _EvaluationError:
        return False


def _variables(driver: str, device: Object) -> dict[str, Any]:
    attributes = {name: next(iter(value.values()), None) for name, value in (device.get("attributes") or {}).items()}
    capacity = {name: _quantity(each.get("value")) for name, each in (device.get("capacity") or {}).items()}
    return {
        "driver": driver,
        "attributes": _Domains(attributes, driver),
        "capacity": _Domains(capacity, driver),
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
    }


class _Domains(dict[str, dict[str, Any]]):
    """Values by domain and name. A domain without values is empty, as in the scheduler."""

    def __init__(self, values: Mapping[str, Any], driver: str) -> None:
        super().__init__()
        for name, value in values.items():
            domain, _, short = name.rpartition("/")
            self.setdefault(domain or driver, {})[short] = value

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def _quantity(text: object) -> Any:
    try:
        return amount(text)
    except DriverFailed as wrong:
        raise _EvaluationError(str(wrong)) from wrong


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
            left = _decided_by(left, self._and(), decisive=True)
        return left

    def _and(self) -> Value:
        left = self._comparison()
        while self._take("&&"):
            left = _decided_by(left, self._comparison(), decisive=False)
        return left

    def _comparison(self) -> Value:
        left = self._unary()
        sign = self._take(*_COMPARISONS, "in")
        if not sign:
            return left
        return _compared(sign, left, self._unary())

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
                value = _member(value, key, optional=sign == "[?")
                continue
            value = self._selected(value, optional=sign == ".?")
        return value

    def _selected(self, value: Value, *, optional: bool) -> Value:
        """Return a field or the result of a method of a value."""
        name = self._name()
        return (
            _called(name, value, self._arguments())
            if self._take("(")
            else _member(value, _constant(name), optional=optional)
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
            return _constant(float(text) if "." in text else int(text))
        if kind == "text":
            return _constant(re.sub(r"\\(.)", r"\1", text[1:-1]))
        if kind == "name":
            return self._named(text)
        raise Unsupported(text)

    def _named(self, name: str) -> Value:
        if name in _CONSTANTS:
            return _constant(_CONSTANTS[name])
        if name == "device":
            return lambda given: given["device"]
        self._expect("(")
        return _function(name, self._arguments())

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


def _constant(value: Any) -> Value:
    return lambda _: value


def _decided_by(left: Value, right: Value, *, decisive: bool) -> Value:
    """Return `left || right` or `left && right`: one decisive side is enough, even if the other side fails."""

    def evaluate(given: Mapping[str, Any]) -> bool:
        failed: _EvaluationError | None = None
        for side in (left, right):
            try:
                if bool(side(given)) is decisive:
                    return decisive
            except _EvaluationError as error:
                failed = error
        if failed:
            raise failed
        return not decisive

    return evaluate


def _compared(sign: str, left: Value, right: Value) -> Value:
    def evaluate(given: Mapping[str, Any]) -> bool:
        one, other = left(given), right(given)
        try:
            return bool(one in other if sign == "in" else _COMPARISONS[sign](one, other))
        except TypeError as wrong:
            raise _EvaluationError(str(wrong)) from wrong

    return evaluate


def _member(value: Value, key: Value, *, optional: bool) -> Value:
    def evaluate(given: Mapping[str, Any]) -> Any:
        found, name = value(given), key(given)
        chained = optional or isinstance(found, _Optional)
        if isinstance(found, _Optional):
            found = found.value if found.is_set else {}
        try:
            if chained and name not in found and not isinstance(found, _Domains):
                return _Optional()
            return _Optional(found[name], is_set=True) if chained else found[name]
        except (LookupError, TypeError) as missing:
            raise _EvaluationError(str(missing)) from missing

    return evaluate


def _called(name: str, value: Value, arguments: list[Value]) -> Value:
    method = _METHODS.get(name)
    if method is None:
        raise Unsupported(name)
    return lambda given: _attempt(method, value(given), *(each(given) for each in arguments))


def _function(name: str, arguments: list[Value]) -> Value:
    if name == "has" and len(arguments) == 1:
        return lambda given: _succeeds(arguments[0], given)
    function = _FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(name)
    return lambda given: _attempt(function, *(each(given) for each in arguments))


def _attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (AttributeError, TypeError, ValueError) as wrong:
        raise _EvaluationError(str(wrong)) from wrong


def _succeeds(value: Value, given: Mapping[str, Any]) -> bool:
    try:
        value(given)
    except _EvaluationError:
        return False
    return True


def _version(text: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in re.split(r"[-+]", str(text))[0].split("."))


def _compare(one: Any, other: Any) -> int:
    mine = _ordered(one)
    return int(mine > other) - int(mine < other)


def _ordered(value: Any) -> Any:
    """Return a value that can be compared: a version attribute is a text."""
    return _version(value) if isinstance(value, str) else value


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quantity": _quantity, "semver": lambda text, *_: _version(text), "size": len, "string": str, "int": int,
}  # fmt: skip
_METHODS: Mapping[str, Callable[..., Any]] = {
    "orValue": lambda value, default: value.value if value.is_set else default,
    "hasValue": lambda value: value.is_set,
    "value": lambda value: value.value,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda value, part: part in value,
    "matches": lambda value, pattern: re.search(pattern, value) is not None,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "size": len,
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _ordered(one) > other,
    "isLessThan": lambda one, other: _ordered(one) < other,
}
