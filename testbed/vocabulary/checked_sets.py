"""Sets whose comparisons cannot pass on nothing. The vocabulary returns them to suites. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")


class NothingToCompare(AssertionError):
    """A comparison would have passed, or would have proved nothing, because a side is empty."""


class _None(frozenset[Any]):
    """The type of NONE."""


NONE: frozenset[Any] = (
    _None()
)  # a suite compares with it where a set must be empty: `assert container.seen_devices == NONE`


class CheckedSet(frozenset[T_co]):
    """A frozenset that raises NothingToCompare if a comparison would pass only because a side is empty.

    A comparison that an empty side makes fail is false as usual. Compare with NONE to require an empty set.
    """

    @property
    def why_empty(self) -> str:
        """Return the likely cause that the set is empty, or ''."""
        return ""

    __hash__ = frozenset.__hash__

    def __eq__(self, other: object) -> bool:
        if not self and isinstance(other, AbstractSet) and not other and other is not NONE:
            raise self._nothing("both sides of ==", other)
        return frozenset.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if isinstance(other, AbstractSet) and not (self and other):
            raise self._nothing("a side of !=", other)
        return frozenset.__ne__(self, other)

    def __le__(self, other: AbstractSet[object]) -> bool:
        if not self:
            raise self._nothing("the left side of <=", other)
        return frozenset.__le__(self, other)

    def __lt__(self, other: AbstractSet[object]) -> bool:
        if not self:
            raise self._nothing("the left side of <", other)
        return frozenset.__lt__(self, other)

    def __ge__(self, other: AbstractSet[object]) -> bool:
        if not other:
            raise self._nothing("the right side of >=", other)
        return frozenset.__ge__(self, other)

    def __gt__(self, other: AbstractSet[object]) -> bool:
        if not other:
            raise self._nothing("the right side of >", other)
        return frozenset.__gt__(self, other)

    def __contains__(self, member: object) -> bool:
        if not self:
            raise self._nothing("the right side of `in`", self)
        return frozenset.__contains__(self, member)

    def __and__(self, other: AbstractSet[object]) -> CheckedSet[T_co]:
        if not (self and other):
            raise self._nothing("a side of &", other)
        return CheckedSet(frozenset.__and__(self, frozenset(other)))

    def isdisjoint(self, other: Iterable[object]) -> bool:
        """Return True if no member is in both sets."""
        return not self & frozenset(other)

    def __or__(self, other: AbstractSet[S]) -> CheckedSet[T_co | S]:
        return CheckedSet(frozenset.__or__(self, frozenset(other)))

    def __sub__(self, other: AbstractSet[object]) -> CheckedSet[T_co]:
        return CheckedSet(frozenset.__sub__(self, frozenset(other)))

    def __repr__(self) -> str:
        return repr(frozenset(self))

    def _nothing(self, which: str, other: object) -> NothingToCompare:
        """Return the error for an empty side, with the likely cause that one of the sets knows."""
        sides = (self, other) if isinstance(other, CheckedSet) else (self,)
        causes = dict.fromkeys(each.why_empty for each in sides if not frozenset.__len__(each) and each.why_empty)
        first = f"expected something to compare, but there is nothing on {which}"
        return NothingToCompare("\n".join([first, *(f"  likely cause: {each}" for each in causes)]))
