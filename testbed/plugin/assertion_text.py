"""The text of a failed assertion: the expression from the test, what was expected, what was found, and the difference.

pytest would show values instead of expressions, shortened in the middle. Used by `failure_text`.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from testbed.plugin.value_text import differences, short_text

_LONGEST = 160
_OPERATORS = {
    "==": "to be",
    "is": "to be",
    "!=": "not to be",
    "is not": "not to be",
    "<": "to be less than",
    "<=": "to be at most",
    ">": "to be more than",
    ">=": "to be at least",
}
_SET_OPERATORS = {"<": "to be a part of", "<=": "to be within", ">": "to have more than", ">=": "to contain"}
_MEMBERSHIP = {"in": "in", "not in": "to be absent from"}


@dataclass(frozen=True)
class FailedComparison:
    """The comparison that pytest found to fail."""

    op: str
    left: object
    right: object

    def describe(self, left: str, right: str) -> list[str]:
        """Return lines that describe the comparison. `left` and `right` are the expressions of its sides."""
        if self.op in _MEMBERSHIP:
            return [
                f"expected {short_text(self.left)} {_MEMBERSHIP[self.op]} {right}; that is {short_text(self.right)}"
            ]
        of_sets = isinstance(self.left, AbstractSet) and isinstance(self.right, AbstractSet)
        words = (_SET_OPERATORS if of_sets else {}).get(self.op) or _OPERATORS[self.op]
        same = self.op in ("!=", "is not")
        first = f"expected {left} {words} {short_text(self.right)}" + (
            "" if same else f"; it is {short_text(self.left)}"
        )
        return [first, *self._differences]

    def describe_in_chain(self, chain: str) -> list[str]:
        """Return lines for a chain of comparisons, in which it is not known which one failed."""
        first = f"expected {chain}; one of these is {short_text(self.left)}, the next is {short_text(self.right)}"
        return [first, *self._differences]

    @property
    def _differences(self) -> list[str]:
        return [f"  difference: {each}" for each in differences(self.op, self.left, self.right)]


def explain_assertion(statement: str, pytest_text: str, compared: FailedComparison | None) -> str:
    """Return the text for a failed `assert`. For a statement without a rule here, return `pytest_text`, which pytest made."""
    written, of_pytest, _ = pytest_text.partition("\nassert ")
    if of_pytest:  # an assertion with a message; what follows are Python objects
        return written
    test = _test_of(statement)
    if test is None or not pytest_text.startswith("assert "):
        return pytest_text
    found = pytest_text.splitlines()[0].removeprefix("assert ")
    if isinstance(test, ast.Compare):
        lines = _of_comparisons(test, compared) if compared else []
        return "\n".join(lines) or f"expected {_source(test)}; found {found}"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return f"expected {_source(test.operand)} to be empty or false; it is {found.removeprefix('not ')}"
    if isinstance(test, ast.BoolOp):
        return f"expected {_source(test)}; found {found}"
    return f"expected {_source(test)} not to be empty or false; it is {found}"


def _of_comparisons(test: ast.Compare, compared: FailedComparison) -> list[str]:
    """Return lines that describe the failed comparison; none if it is not in the statement."""
    sides = [test.left, *test.comparators]
    same = [index for index, op in enumerate(test.ops) if _symbol(op) == compared.op]
    if len(same) == 1:
        return compared.describe(*(_source(each) for each in sides[same[0] : same[0] + 2]))
    return compared.describe_in_chain(_source(test)) if same else []


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
