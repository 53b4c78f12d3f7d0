"""Reads a Hardware file. Its author learns all that is wrong at once, each with its path; what is read obeys every limit of the API.

spec:
  devices:
  - kind: gpu                          # devices gpu-0, gpu-1, …; also the prefix of variables in containers
    count: 2
    attributes: {model: F100, driverVersion: {version: 1.2.3}, healthy: true}
    capacity: {memory: 80Gi}
    perDevice: [{numaNode: 0}, {numaNode: 1}]     # optional: one row for each device
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fake_driver import strict
from fake_driver.errors import ConfigurationError
from fake_driver.hardware.model import Group, Hardware, Row, Value, Version
from fake_driver.names import LABEL, QUALIFIED, fits
from fake_driver.strict import Section

MOST_DEVICES = 10_000
_AUTOMATIC = frozenset({"index", "uuid"})
_MOST_ENTRIES = 32  # attributes and capacities of one device together
_LONGEST_TEXT = 64
_WIDEST = 2**63
_SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_QUANTITY = re.compile(r"\d{1,18}(?:\.\d{1,9})?(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})?", re.ASCII)
_KIND = re.compile(r"[a-z](?:[-a-z0-9]{0,30}[a-z0-9])?")


def read(path: Path) -> Hardware:
    """The hardware that a file describes."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as unreadable:
        raise ConfigurationError(f"the hardware file {path} cannot be read: {unreadable}") from unreadable
    return parse(text, str(path))


def parse(text: str, name: str) -> Hardware:
    """The hardware that a YAML text describes; `name` is for the error."""
    problems: list[str] = []
    document = Section("", strict.load(text, name), problems)
    document.constant("apiVersion", "dra-testbed/v1alpha1")
    document.constant("kind", "Hardware")
    metadata, spec = document.section("metadata"), document.section("spec")
    called = metadata.name("name", LABEL, "a DNS label")
    groups = tuple(_group(section) for section in spec.sections("devices"))
    for section in (document, metadata, spec):
        section.done()
    total = sum(group.count for group in groups)
    if total > MOST_DEVICES:
        problems.append(f"spec.devices are {total} devices, but a node may have {MOST_DEVICES}")
    if problems:
        listed = "\n".join(f"  {problem}" for problem in dict.fromkeys(problems))
        raise ConfigurationError(f"{name} does not describe hardware:\n{listed}")
    return Hardware(called, groups)


def _group(section: Section) -> Group:
    kind = section.name("kind", _KIND, "a short DNS label that starts with a letter")
    count = section.take("count", int) or 0
    if not 1 <= count <= MOST_DEVICES:
        section.problem("count", f"must be 1 to {MOST_DEVICES}")
    attributes = _attributes(section, "attributes", section.take("attributes", dict, {}))
    capacity = _capacity(section, section.take("capacity", dict, {}))
    rows = [
        _attributes(section, f"perDevice[{i}]", row) for i, row in enumerate(section.take("perDevice", list, []) or [])
    ]
    if rows and len(rows) != count:
        section.problem("perDevice", f"has {len(rows)} rows for {count} devices")
    for row in rows or [{}]:
        entries = len(attributes.keys() | row.keys() | _AUTOMATIC) + len(capacity)
        if entries > _MOST_ENTRIES:
            section.problem(
                "attributes", f"and capacity are {entries} together (with index and uuid), but may be {_MOST_ENTRIES}"
            )
    section.done()
    return Group(kind, count, attributes, capacity, tuple(rows))


def _attributes(section: Section, key: str, content: object) -> Row:
    if not isinstance(content, dict):
        section.problem(key, "must be a mapping of attributes")
        return {}
    values = {
        name: _value(section, f"{key}.{name}", raw) for name, raw in content.items() if _named(section, key, name)
    }
    return {name: value for name, value in values.items() if value is not None}


def _value(section: Section, path: str, raw: Any) -> Value | None:
    if isinstance(raw, dict):
        version = raw.get("version")
        if (
            set(raw) == {"version"}
            and isinstance(version, str)
            and fits(_SEMVER, version)
            and len(version) <= _LONGEST_TEXT
        ):
            return Version(version)
        section.problem(path, "must be {version: x.y.z}, with a semantic version of at most 64 characters")
    elif isinstance(raw, bool):
        return raw
    elif isinstance(raw, int):
        if -_WIDEST <= raw < _WIDEST:
            return raw
        section.problem(path, "does not fit into 64 bits")
    elif isinstance(raw, str) and 0 < len(raw.encode()) <= _LONGEST_TEXT and raw.isprintable():
        return raw
    else:
        section.problem(
            path, "must be true, false, a whole number, {version: x.y.z}, or a printable text of 1 to 64 bytes"
        )
    return None


def _capacity(section: Section, content: dict[Any, Any] | None) -> dict[str, str]:
    found = {}
    for name, raw in (content or {}).items():
        text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw
        if not fits(_QUANTITY, text):
            section.problem(f"capacity.{name}", f"is {raw!r}, but must be a quantity such as 80Gi")
        elif _named(section, "capacity", name):
            found[name] = text
    return found


def _named(section: Section, key: str, name: object) -> bool:
    if fits(QUALIFIED, name):
        return True
    section.problem(
        key, f"has the name {name!r}, but it must be a C identifier of at most 32 letters, with or without a domain"
    )
    return False
