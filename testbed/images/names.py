"""Names of images as container runtimes complete them. Used by the modules that build images, and by those that compare names."""

from __future__ import annotations

import re

from testbed.errors import UsageError

_HUB = "docker.io"
_DIGEST = r"@sha256:[0-9a-f]{64}"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::\d+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::[\w][\w.-]{{0,127}})?(?:{_DIGEST})?"
)


def check(name: str) -> str:
    """Return the complete form of an image's name. Raise UsageError if it is not valid."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name of an image", hint="use a name such as localhost/driver:1, in lower case"
        )
    return complete(name)


def complete(name: str) -> str:
    """Return a name with registry and tag, as kubelets look it up: `driver` becomes docker.io/library/driver:latest."""
    first, slash, rest = name.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost"):
        first, rest = _HUB, name
    if first == _HUB and "/" not in rest:
        rest = f"library/{rest}"
    tagged = "@" in rest or ":" in rest.rpartition("/")[2]
    return f"{first}/{rest}" if tagged else f"{first}/{rest}:latest"


def last_component(name: str) -> str:
    """Return the last component of a name without its tag and digest: driver for localhost/acme/driver:1."""
    return name.partition("@")[0].rpartition("/")[2].partition(":")[0]
