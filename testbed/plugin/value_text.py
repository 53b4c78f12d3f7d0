"""Short texts of values, and of the differences between two values. For `assertion_text`."""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from testbed.drivers.published.slices import Device

_LONGEST = 160
_LONGEST_ALONE = 1000  # a message of an API server is only understood as a whole
_MOST = 6
_AROUND = 40  # characters that are shown where two texts differ
_BEFORE = 10  # of them, before the difference


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING = _Missing()


class _Shortener(reprlib.Repr):
    """Shortens values, and leaves out the names of Python types."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = _MOST
        self.maxother = _LONGEST
        self.maxstring = longest

    def repr1(self, value: object, level: int) -> str:
        """Return devices as in all messages, and all types of sets and of mappings alike."""
        if isinstance(value, Device):
            return f"{value.name} of {value.pool}"
        if isinstance(value, Mapping):
            return self.repr_dict(dict(value), level)
        if isinstance(value, AbstractSet):
            return "{" + self.repr_list(_in_order(value), level)[1:-1] + "}"
        return super().repr1(value, level)


def short_text(value: object) -> str:
    """Return a value in one line. A string of its own may be longer than a string in a collection."""
    return (_ALONE if isinstance(value, str) else _SHORT).repr(value)


def differences(op: str, left: object, right: object) -> list[str]:
    """Return a few lines with the differences of two collections or long texts; none if their short texts show them."""
    left, right = _plain(left), _plain(right)
    if isinstance(left, AbstractSet) and isinstance(right, AbstractSet):
        line = _of_sets(op, left, right) if _overlap(left, right) else ""
        return [line] if line else []
    return list(itertools.islice(_differing(left, right, ""), _MOST)) if op == "==" else []


def _differing(left: object, right: object, path: str) -> Iterator[str]:
    """Yield expected and found values, down to where the types differ."""
    left, right = _plain(left), _plain(right)
    at = f"{path}: " if path else ""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in {**right, **left}:
            yield from _differing(
                left.get(key, _MISSING), right.get(key, _MISSING), f"{path}.{key}" if path else f"{key}"
            )
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for index, (one, other) in enumerate(itertools.zip_longest(left, right, fillvalue=_MISSING)):
            yield from _differing(one, other, f"{path}[{index}]")
    elif left == right:
        return
    elif isinstance(left, str) and isinstance(right, str) and max(len(left), len(right)) > _LONGEST:
        yield at + _of_texts(left, right)
    elif isinstance(left, AbstractSet) and isinstance(right, AbstractSet):
        yield at + _of_sets("==", left, right)
    elif path:
        yield f"{at}expected {short_text(right)}, found {short_text(left)}"


def _plain(value: object) -> object:
    """Return a set without the rules of its type: those of CheckedSet raise when a side is empty, which is what is described here."""
    return frozenset(value) if isinstance(value, frozenset) else value


def _of_texts(left: str, right: str) -> str:
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    start = max(same - _BEFORE, 0)
    wanted, found = (repr(each[start : start + _AROUND]) for each in (right, left))
    return (
        f"from character {same + 1} on: expected {wanted}, found {found}; {len(right)} and {len(left)} characters long"
    )


def _of_sets(op: str, left: AbstractSet[object], right: AbstractSet[object]) -> str:
    lacks = [each for each in right if each not in left] if op in ("==", ">=", ">") else []
    surplus = [each for each in left if each not in right] if op in ("==", "<=", "<") else []
    parts = (f"lacks {_braces(lacks)}" if lacks else "", f"has {_braces(surplus)} too" if surplus else "")
    return ", ".join(filter(None, parts)) or ("they are equal" if op in ("<", ">") else "")


def _overlap(left: AbstractSet[object], right: AbstractSet[object]) -> bool:
    return any(each in right for each in left)


def _braces(members: Iterable[object]) -> str:
    return "{" + _SHORT.repr(_in_order(members))[1:-1] + "}"


def _in_order(members: Iterable[Any]) -> list[object]:
    try:
        return sorted(members)
    except TypeError:
        return sorted(members, key=repr)


_SHORT, _ALONE = _Shortener(_LONGEST), _Shortener(_LONGEST_ALONE)
