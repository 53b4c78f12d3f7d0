"""In whose name a user of a kubeconfig acts: `as`, `as-uid`, `as-groups`, `as-user-extra`.

An administrator who limits himself so is never run with all his rights. Called by the transport.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from testbed.errors import UsageError

Headers = tuple[tuple[str, str], ...]
_HEADER_SAFE = "!#$&'*+^`|"  # in a header's name, beside letters, digits and what `quote` leaves alone


def headers(user: dict[str, Any], source: str) -> Headers:
    """The headers that say so on every request; none for a user who acts as himself. What cannot be said is refused, never left out."""
    try:
        found = tuple(_pairs(user))
    except (TypeError, ValueError) as bad:
        raise UsageError(f"kubeconfig {source}: {bad}") from bad
    if found and found[0][0] != "Impersonate-User":
        raise UsageError(
            f"kubeconfig {source}: its user has {', '.join(sorted(key for key in user if key.startswith('as-')))} without as",
            hint="say whose name it is: as: NAME",
        )
    return found


def _pairs(user: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
        if user.get(key) not in (None, ""):
            yield header, _text(key, user[key])
    for each in _texts("as-groups", user.get("as-groups")):
        yield "Impersonate-Group", each
    extra = user.get("as-user-extra")
    if not isinstance(extra, dict | None):
        raise TypeError("as-user-extra of its user must be a list of words for each key")
    for key, values in (extra or {}).items():
        name = f"Impersonate-Extra-{quote(_text('as-user-extra', key), safe=_HEADER_SAFE)}"
        yield from ((name, each) for each in _texts("as-user-extra", values))


def _texts(key: str, values: Any) -> list[str]:
    if not isinstance(values, list | None):
        raise TypeError(f"{key} of its user must be a list of words")
    return [_text(key, each) for each in values or ()]


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{key} of its user must be text, in quotes if it looks like a number")
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{key} of its user holds a character that no header can carry")
    return value
