"""Find identities of devices in texts that a driver wrote, such as messages of conditions. Pure; for Driver."""

from __future__ import annotations

import re
from collections.abc import Iterable

_JOINING = "-._"  # join parts of a name
_ALSO_JOINING = ":/="  # do so only in identities that contain them: a MAC address, but not `uuid=GPU-1: ready`


def mentioned(identities: Iterable[str], text: str) -> frozenset[str]:
    """Return the identities that occur in a text: not as a part of a longer name, but with any punctuation around them."""
    return frozenset(each for each in identities if each and re.search(_pattern(each), text))


def _pattern(identity: str) -> str:
    joining = re.escape(_JOINING + "".join(each for each in _ALSO_JOINING if each in identity))
    return rf"(?<!\w)(?<!\w[{joining}]){re.escape(identity)}(?!\w)(?![{joining}]\w)"
