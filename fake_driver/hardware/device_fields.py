"""Decode the fields of a device in a hardware file: attributes, capacity and taints. Live control decodes overrides with it, too.

Each function reads from a section, adds problems to it, and returns what is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from fake_driver.devices import request_policies
from fake_driver.devices.model import Attributes, RequestPolicy, Scalar, Taint, Value, Version
from fake_driver.devices.quantities import amount, canonical
from fake_driver.name_patterns import LABEL_KEY, LABEL_VALUE, QUALIFIED_NAME, matches
from fake_driver.strict_decoding import Section

T = TypeVar("T")
_MAX_STRING_BYTES = 64
_INTEGER_LIMIT = 2**63
MOST_VALUES, _MOST_TAINTS = 48, 16
_EFFECTS = ("NoSchedule", "NoExecute", "None")
_SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def attributes(section: Section, key: str = "attributes") -> Attributes:
    """Return the attributes under a key."""
    return attributes_from(section, key, section.get(key, dict, {}))


def attributes_from(section: Section, key: str, content: object) -> Attributes:
    """Return the attributes in a mapping."""
    return _mapping(section, key, content, "attributes", lambda path, raw: _value(section, path, raw))


def spread(section: Section) -> dict[str, tuple[Scalar, ...]]:
    """Return the values of each attribute that are distributed over the devices of a group."""

    def values(path: str, raw: object) -> tuple[Scalar, ...] | None:
        if not isinstance(raw, list) or not raw:
            section.add_problem(path, "must be a list of values")
            return None
        return _scalars(section, path, raw)

    return _mapping(section, "spread", section.get("spread", dict, {}), "lists of values", values)


def capacity(section: Section, key: str = "capacity") -> tuple[dict[str, str], dict[str, RequestPolicy]]:
    """Return the quantities under a key, and the request policies of those that have one."""
    found_policies: dict[str, RequestPolicy] = {}

    def one(path: str, raw: object) -> str | None:
        if not isinstance(raw, dict):
            return quantity(section, path, raw)
        inner = Section(_under(section, path), raw, section.problems)
        value = quantity(inner, "value", inner.get("value", object))
        if "requestPolicy" in raw and value:
            found_policies[path.partition(".")[2]] = _policy(inner.section("requestPolicy"), value)
        inner.check_unknown_keys()
        return value

    found = _mapping(section, key, section.get(key, dict, {}), "quantities", one)
    return found, {name: policy for name, policy in found_policies.items() if name in found}


def quantities(section: Section, key: str, named: re.Pattern[str], what: str) -> dict[str, str]:
    """Return quantities whose names must match a pattern, which `what` describes."""
    content = section.get(key, dict) or {}
    read = {name: quantity(section, f"{key}.{name}", raw) for name, raw in content.items()}
    for name in read:
        if not matches(named, name):
            section.add_problem(key, f"has the name {name!r}, but names must be {what}")
    return {name: value for name, value in read.items() if value is not None and matches(named, name)}


def quantity(section: Section, key: str, raw: object) -> str | None:
    """Return a quantity in canonical form; an integer is valid, too. Return None for an invalid one."""
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw
    if amount(text) is None:
        section.add_problem(key, f"is {raw!r}, but must be a quantity such as 80Gi")
        return None
    return canonical(str(text))


def taints(section: Section) -> tuple[Taint, ...]:
    """Return the taints."""
    found = [taint(each) for each in section.sections("taints")]
    if len(found) > _MOST_TAINTS:
        section.add_problem("taints", f"has {len(found)} entries, but a device may have at most {_MOST_TAINTS} taints")
    return tuple(found)


def strings(section: Section, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a list of strings that are not empty."""
    found = section.get(key, list, list(default)) or []
    if not all(isinstance(each, str) and each for each in found):
        section.add_problem(key, "must be a list of strings")
        return default
    return tuple(found)


def boolean(section: Section, key: str, default: bool = False) -> bool:
    """Return a boolean."""
    return bool(section.get(key, bool, default))


def _under(section: Section, path: str) -> str:
    return ".".join(part for part in (section.path, path) if part)


def _mapping(
    section: Section, key: str, content: object, what: str, read: Callable[[str, Any], T | None]
) -> dict[str, T]:
    if not isinstance(content, dict):
        section.add_problem(key, f"must be a mapping of {what}")
        return {}
    found: dict[str, T | None] = {}
    for name, raw in content.items():
        if matches(QUALIFIED_NAME, name):
            found[name] = read(f"{key}.{name}", raw)
        else:
            section.add_problem(
                key,
                f"has the name {name!r}, but names must be C identifiers of at most 32 characters, with or without a domain",
            )
    return {name: value for name, value in found.items() if value is not None}


def _value(section: Section, path: str, raw: object) -> Value | None:
    if isinstance(raw, list):
        if not 1 <= len(raw) <= MOST_VALUES or len({_type(each) for each in raw}) > 1:
            section.add_problem(path, f"must be 1 to {MOST_VALUES} values of one type")
            return None
        return _scalars(section, path, raw)
    return _scalar(section, path, raw)


def _type(raw: object) -> type:
    return bool if isinstance(raw, bool) else type(raw)


def _scalars(section: Section, path: str, raw: list[Any]) -> tuple[Scalar, ...] | None:
    read = [_scalar(section, f"{path}[{index}]", each) for index, each in enumerate(raw)]
    return tuple(each for each in read if each is not None) if None not in read else None


def _scalar(section: Section, path: str, raw: object) -> Scalar | None:
    if isinstance(raw, dict):
        version = raw.get("version")
        if (
            set(raw) == {"version"}
            and isinstance(version, str)
            and matches(_SEMVER, version)
            and len(version) <= _MAX_STRING_BYTES
        ):
            return Version(version)
        section.add_problem(path, "must be {version: x.y.z}, with a semantic version of at most 64 characters")
    elif isinstance(raw, bool):
        return raw
    elif isinstance(raw, int):
        if -_INTEGER_LIMIT <= raw < _INTEGER_LIMIT:
            return raw
        section.add_problem(path, "does not fit into 64 bits")
    elif isinstance(raw, str) and raw.isprintable() and 0 < len(raw.encode()) <= _MAX_STRING_BYTES:
        return raw
    else:
        section.add_problem(
            path,
            "must be true, false, an integer, {version: x.y.z}, a printable string of 1 to 64 bytes, or a list of these",
        )
    return None


def taint(section: Section) -> Taint:
    """Return the taint that a section describes."""
    key = section.matching("key", LABEL_KEY, "a label key")
    effect = section.get("effect", str) or ""
    if effect and effect not in _EFFECTS:
        section.add_problem("effect", f"is {effect!r}, but must be one of {', '.join(_EFFECTS)}")
    value = section.get("value", str, "") or ""
    if value and not matches(LABEL_VALUE, value):
        section.add_problem("value", f"is {value!r}, but must be a label value")
    section.check_unknown_keys()
    return Taint(key, effect, value)


def _policy(section: Section, value: str) -> RequestPolicy:
    default = quantity(section, "default", section.get("default", object)) or "0"
    valid = section.get("validValues", list, []) or []
    values = tuple(quantity(section, f"validValues[{index}]", each) or "0" for index, each in enumerate(valid))
    within = _range(section.section("validRange")) if "validRange" in section.content else {}
    section.check_unknown_keys()
    policy = RequestPolicy(default, values, within.get("min", ""), within.get("max", ""), within.get("step", ""))
    for problem in request_policies.problems(policy, value):
        section.add_problem("", problem)
    return policy


def _range(section: Section) -> dict[str, str]:
    section.get("min", object)  # adds a problem if it is missing
    section.known_keys |= {"max", "step"}
    found = {
        key: quantity(section, key, section.content[key]) for key in ("min", "max", "step") if key in section.content
    }
    section.check_unknown_keys()
    return {key: text for key, text in found.items() if text}
