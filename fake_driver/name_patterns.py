"""What Kubernetes accepts as a name, so that nothing else becomes a path, a URL or a CDI id. Pure; everybody may use it."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
DNS_LABEL = re.compile(_LABEL)
DNS_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
# UIDs are UUIDs in practice; the API only promises a string. No dots and no slashes: it becomes part of file names and CDI ids.
UID = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
# The CDI vendor is the driver's name, and a vendor starts with a letter.
DRIVER_NAME = re.compile(rf"(?=[a-z])(?=.{{1,63}}\Z){_LABEL}(?:\.{_LABEL})*")
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,31}"
# An attribute or capacity: a C identifier, with or without the domain of whoever defined it.
QUALIFIED_NAME = re.compile(rf"(?:(?=[^/]{{1,63}}/){_LABEL}(?:\.{_LABEL})*/)?{_IDENTIFIER}")
_WORD = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = re.compile(_WORD)
LABEL_KEY = re.compile(rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_WORD}")


def matches(pattern: re.Pattern[str], text: object) -> bool:
    """Whether it is a text and all of it matches."""
    return isinstance(text, str) and pattern.fullmatch(text) is not None
