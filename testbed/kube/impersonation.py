"""Reads impersonation from a kubeconfig: `as`, `as-uid`, `as-groups`, `as-user-extra`. Used by the transport.

An administrator who impersonates a limited user must never act with full permissions, so invalid values are refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from testbed.errors import UsageError

Headers = tuple[tuple[str, str], ...]
_HEADER_SAFE = "!#$&'*+^`|"  # allowed in the name of a header, besides what `quote` keeps


def headers(user: dict[str, Any], source: str) -> Headers:
    """Return the impersonation headers of a user, if it impersonates another one. Raise UsageError for invalid values."""
    try:
        found = tuple(_pairs(user))
    except (TypeError, ValueError) as bad:
        raise UsageError(f"kubeconfig {source}: {bad}") from bad
    if found and found[0][0] != "Impersonate-User":
        raise UsageError(
            f"kubeconfig {source}: its user has {', '.join(sorted(key for key in user if key.startswith('as-')))} without as",
            hint="add the user to impersonate: as: NAME",
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
        raise TypeError("as-user-extra of its user must be a mapping of lists")
    for key, values in (extra or {}).items():
        name = f"Impersonate-Extra-{quote(_text('as-user-extra', key), safe=_HEADER_SAFE)}"
        yield from ((name, each) for each in _texts("as-user-extra", values))


def _texts(key: str, values: Any) -> list[str]:
    if not isinstance(values, list | None):
        raise TypeError(f"{key} of its user must be a list of strings")
    return [_text(key, each) for each in values or ()]


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{key} of its user must be a string, in quotes if it looks like a number")
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{key} of its user contains a character that is not allowed in HTTP headers")
    return value
