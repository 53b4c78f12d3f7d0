"""What an assertion that failed says, in words: the test's own expression, what it should be, and what it is. Pure.

pytest shows values and shortens them in the middle; whoever has a red build reads the expression first, and wants the difference.
"""

from __future__ import annotations

import ast
import reprlib
import textwrap
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from testbed.drivers.slices import Device

_LONGEST = 160
_SHOWN = 6
_AS_WORDS = {
    "==": "to be",
    "is": "to be",
    "!=": "not to be",
    "is not": "not to be",
    "<": "to be less than",
    "<=": "to be at most",
    ">": "to be more than",
    ">=": "to be at least",
}
_OF_SETS = {"<": "to be a part of", "<=": "to be within", ">": "to have more than", ">=": "to contain"}
_MEMBERS = {"in": "in", "not in": "to be absent from"}


@dataclass(frozen=True)
class Comparison:
    """The comparison that pytest found to fail."""

    op: str
    left: object
    right: object

    def worded(self, left: str, right: str) -> list[str]:
        """In lines, with the expressions of its sides."""
        if self.op in _MEMBERS:
            return [f"expected {_shown(self.left)} {_MEMBERS[self.op]} {right}; that is {_shown(self.right)}"]
        words = (_OF_SETS if _are(AbstractSet, self.left, self.right) else {}).get(self.op) or _AS_WORDS[self.op]
        same = self.op in ("!=", "is not")
        first = f"expected {left} {words} {_shown(self.right)}" + ("" if same else f"; it is {_shown(self.left)}")
        return [first, *(f"  difference: {each}" for each in _difference(self.op, self.left, self.right))]


def worded(statement: str, said: str, compared: Comparison | None) -> str:
    """`said` is pytest's text of a failed `assert`, which is kept where the statement is none that has words."""
    test = _test_of(statement)
    if test is None or not said.startswith("assert "):
        return said
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and compared and compared.op == _symbol(test.ops[0]):
        return "\n".join(compared.worded(_source(test.left), _source(test.comparators[0])))
    found = said.splitlines()[0].removeprefix("assert ")
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return f"expected {_source(test.operand)} to be empty or false; it is {found.removeprefix('not ')}"
    return f"expected {_source(test)}; found {found}"


def _test_of(statement: str) -> ast.expr | None:
    try:
        (found,) = ast.parse(textwrap.dedent(statement)).body
    except (SyntaxError, ValueError):
        return None
    return found.test if isinstance(found, ast.Assert) and found.msg is None else None


def _symbol(op: ast.cmpop) -> str:
    return ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[2:-2]


def _source(expression: ast.expr) -> str:
    return textwrap.shorten(ast.unparse(expression), _LONGEST, placeholder=" …")


def _difference(op: str, left: object, right: object) -> list[str]:
    """What makes two collections unlike, where that is not all that they are."""
    if op == "==" and isinstance(left, Mapping) and isinstance(right, Mapping):
        keys = [key for key in {**right, **left} if key not in left or key not in right or left[key] != right[key]]
        return [f"{key}: expected {_at(right, key)}, found {_at(left, key)}" for key in keys[:_SHOWN]]
    if isinstance(left, AbstractSet) and isinstance(right, AbstractSet) and left & right:
        lacks = f"lacks {_shown(right - left)}" if op in ("==", ">=") and right - left else ""
        surplus = f"has {_shown(left - right)} too" if op in ("==", "<=") and left - right else ""
        return [", ".join(filter(None, (lacks, surplus)))]
    return []


def _at(mapping: Mapping[object, object], key: object) -> str:
    return _shown(mapping[key]) if key in mapping else "nothing"


def _are(kind: type, *values: object) -> bool:
    return all(isinstance(each, kind) for each in values)


class _Shown(reprlib.Repr):
    """Short, and without the names of Python's types."""

    def __init__(self) -> None:
        super().__init__()
        self.maxset = self.maxfrozenset = self.maxdict = self.maxlist = self.maxtuple = _SHOWN
        self.maxstring = self.maxother = _LONGEST

    def repr1(self, value: object, level: int) -> str:
        """Devices as everywhere in what people read."""
        return f"{value.name} of {value.pool}" if isinstance(value, Device) else super().repr1(value, level)

    def repr_frozenset(self, value: frozenset[object], level: int) -> str:
        """Like a set."""
        return self.repr_set(set(value), level)

    def repr_set(self, value: set[object], level: int) -> str:
        """In braces; what is in it stands in order."""
        return super().repr_set(value, level) if value else "{}"


def _shown(value: object) -> str:
    plain = frozenset(value) if isinstance(value, AbstractSet) else dict(value) if isinstance(value, Mapping) else value
    return _SHORT.repr(plain)


_SHORT = _Shown()
