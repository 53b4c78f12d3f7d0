"""Documents for fuzzing: valid documents with random changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", ".", "..", "../../x", "/etc/passwd", "a\0b", "a\nb", "x" * 300, "None"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
Place = tuple[Any, Any]


@st.composite
def with_random_changes(draw: st.DrawFn, *wholes: Any) -> Any:
    """Draw one of the documents and change, remove, copy or add up to three values."""
    made = copy.deepcopy(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(made))
        if not places:
            break
        inside, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["other", "gone", "moved", "more"]))
        if change == "gone":
            del inside[key]
        elif change == "moved":
            there, other = draw(st.sampled_from(places))
            inside[key] = copy.deepcopy(there[other])
        elif change == "more" and isinstance(inside, dict):
            inside[draw(TEXTS)] = draw(VALUES)
        else:
            inside[key] = draw(VALUES)
    return made


def _places(document: Any) -> Iterator[Place]:
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])
