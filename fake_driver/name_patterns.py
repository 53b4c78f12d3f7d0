"""Patterns of the names that Kubernetes accepts, so that nothing else becomes part of a path, a URL or a CDI ID. Pure."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
DNS_LABEL = re.compile(_LABEL)
DNS_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
# UIDs are UUIDs in practice, but the API only promises a string. No dots or slashes: it becomes part of file names and CDI IDs.
UID = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
# The driver's name is the CDI vendor, which must start with a letter.
DRIVER_NAME = re.compile(rf"(?=[a-z])(?=.{{1,63}}\Z){_LABEL}(?:\.{_LABEL})*")
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,31}"
# An attribute or capacity: a C identifier, with or without a domain.
QUALIFIED_NAME = re.compile(rf"(?:(?=[^/]{{1,63}}/){_LABEL}(?:\.{_LABEL})*/)?{_IDENTIFIER}")
_WORD = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = re.compile(_WORD)
LABEL_KEY = re.compile(rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_WORD}")


def matches(pattern: re.Pattern[str], text: object) -> bool:
    """Return True if `text` is a string that matches completely."""
    return isinstance(text, str) and pattern.fullmatch(text) is not None
