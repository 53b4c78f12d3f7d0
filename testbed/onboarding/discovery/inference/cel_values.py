"""Values and operations of CEL, as far as selectors of DeviceClasses use them. Pure; `cel` parses expressions into them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import DriverFailed
from testbed.vocabulary.driver.quantities import amount

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Unsupported(Exception):
    """An expression uses a part of CEL that this module does not know."""


class EvaluationError(Exception):
    """The evaluation of an expression fails for a device, for example because it lacks an attribute."""


Value = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Optional:
    """An optional value of CEL, such as device.attributes["a.example"].?model."""

    value: Any = None
    is_set: bool = False


class Domains(dict[str, dict[str, Any]]):
    """Values by domain and name. A domain without values is empty, as in the scheduler."""

    def __init__(self, values: Mapping[str, Any], driver: str) -> None:
        super().__init__()
        for name, value in values.items():
            domain, _, short = name.rpartition("/")
            self.setdefault(domain or driver, {})[short] = value

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def quantity(text: object) -> Any:
    """Return a quantity as a number. Raise EvaluationError if it is none."""
    try:
        return amount(text)
    except DriverFailed as wrong:
        raise EvaluationError(str(wrong)) from wrong


def constant(value: Any) -> Value:
    """Return a value that is the same for all devices."""
    return lambda _: value


def decided_by(left: Value, right: Value, *, decisive: bool) -> Value:
    """Return `left || right` or `left && right`: one decisive side is enough, even if the other side fails."""

    def evaluate(given: Mapping[str, Any]) -> bool:
        failed: EvaluationError | None = None
        for side in (left, right):
            try:
                if bool(side(given)) is decisive:
                    return decisive
            except EvaluationError as error:
                failed = error
        if failed:
            raise failed
        return not decisive

    return evaluate


def compared(sign: str, left: Value, right: Value) -> Value:
    """Return the comparison of two values with a sign, or with `in`."""

    def evaluate(given: Mapping[str, Any]) -> bool:
        one, other = left(given), right(given)
        try:
            return bool(one in other if sign == "in" else COMPARISONS[sign](one, other))
        except TypeError as wrong:
            raise EvaluationError(str(wrong)) from wrong

    return evaluate


def member(value: Value, key: Value, *, optional: bool) -> Value:
    """Return a member of a map; with `optional`, an optional value."""

    def evaluate(given: Mapping[str, Any]) -> Any:
        found, name = value(given), key(given)
        chained = optional or isinstance(found, Optional)
        if isinstance(found, Optional):
            found = found.value if found.is_set else {}
        try:
            if chained and name not in found and not isinstance(found, Domains):
                return Optional()
            return Optional(found[name], is_set=True) if chained else found[name]
        except (LookupError, TypeError) as missing:
            raise EvaluationError(str(missing)) from missing

    return evaluate


def called(name: str, value: Value, arguments: list[Value]) -> Value:
    """Return the result of a method. Raise Unsupported if it is not known."""
    method = _METHODS.get(name)
    if method is None:
        raise Unsupported(name)
    return lambda given: _attempt(method, value(given), *(each(given) for each in arguments))


def function(name: str, arguments: list[Value]) -> Value:
    """Return the result of a function. Raise Unsupported if it is not known."""
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
        raise EvaluationError(str(wrong)) from wrong


def _succeeds(value: Value, given: Mapping[str, Any]) -> bool:
    try:
        value(given)
    except EvaluationError:
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
    "quantity": quantity, "semver": lambda text, *_: _version(text), "size": len, "string": str, "int": int,
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
