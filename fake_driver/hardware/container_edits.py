"""Decode `containerEdits` of a hardware file: device nodes, mounts, hooks and groups, with the fields of CDI.

Container runtimes refuse a CDI file with an unknown or malformed field, so every field is checked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from fake_driver.errors import suggestion
from fake_driver.hardware import device_fields
from fake_driver.strict_decoding import Section

_MAX_CHARACTERS = 10_000
_MAX_ID = 2**32 - 1  # of users, groups and modes
_TYPE = re.compile(r"[bcup]")
_PERMISSIONS = re.compile(r"[rwm]{1,3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")

Read = Callable[[Section, str], Any]


def edits(section: Section) -> dict[str, Any]:
    """Return the edits of a section. The placeholders {index} and {name} are filled in later."""
    found: dict[str, Any] = {}
    for key, (fields, needed) in _LISTS.items():
        section.known_keys.add(key)
        if key in section.content:
            found[key] = [_mapping(each, fields, needed) for each in section.sections(key)]
    section.known_keys.add("additionalGids")
    if "additionalGids" in section.content:
        found["additionalGids"] = _groups(section)
    section.check_unknown_keys()
    length = len(json.dumps(found))
    if length > _MAX_CHARACTERS:
        section.add_problem("", f"has {length} characters, but may have at most {_MAX_CHARACTERS}")
    return found


def _mapping(section: Section, fields: Mapping[str, Read], needed: tuple[str, ...]) -> dict[str, Any]:
    section.known_keys |= fields.keys()
    found = {key: read(section, key) for key, read in fields.items() if key in section.content or key in needed}
    section.check_unknown_keys()
    return found


def _groups(section: Section) -> list[int]:
    found = section.get("additionalGids", list) or []
    if not all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= _MAX_ID for each in found):
        section.add_problem("additionalGids", f"must be integers from 0 to {_MAX_ID}")
        return []
    return found


def _path(section: Section, key: str) -> str:
    path = section.get(key, str)
    if path is not None and not (path.startswith("/") and path.isprintable()):
        section.add_problem(key, f"is {path!r}, but must be a path that begins with /")
    return path or ""


def _printable(section: Section, key: str) -> str:
    word = section.get(key, str)
    if word is not None and not (word and word.isprintable()):
        section.add_problem(key, "must be a printable string")
    return word or ""


def _number(section: Section, key: str) -> int:
    number = section.get(key, int)
    if number is not None and not 0 <= number <= _MAX_ID:
        section.add_problem(key, f"must be 0 to {_MAX_ID}")
    return number or 0


def _texts(section: Section, key: str) -> list[str]:
    return list(device_fields.strings(section, key))


def _variables(section: Section, key: str) -> list[str]:
    found = _texts(section, key)
    for each in found:
        if not _VARIABLE.fullmatch(each):
            section.add_problem(key, f"has {each!r}, but must have variables such as A=b")
    return found


def _hook_name(section: Section, key: str) -> str:
    name = section.get(key, str) or ""
    if name and name not in _HOOKS:
        section.add_problem(key, f"is {name!r}; {suggestion(name, _HOOKS)}")
    return name


_NODE: Mapping[str, Read] = {
    "path": _path,
    "hostPath": _path,
    "type": lambda section, key: section.matching(key, _TYPE, "b, c, u or p"),
    "major": _number,
    "minor": _number,
    "fileMode": _number,
    "permissions": lambda section, key: section.matching(key, _PERMISSIONS, "1 to 3 letters of rwm"),
    "uid": _number,
    "gid": _number,
}
_MOUNT: Mapping[str, Read] = {"hostPath": _path, "containerPath": _path, "options": _texts, "type": _printable}
_HOOK: Mapping[str, Read] = {
    "hookName": _hook_name, "path": _path, "args": _texts, "env": _variables, "timeout": _number,
}  # fmt: skip
_LISTS: Mapping[str, tuple[Mapping[str, Read], tuple[str, ...]]] = {
    "deviceNodes": (_NODE, ("path",)),
    "mounts": (_MOUNT, ("hostPath", "containerPath")),
    "hooks": (_HOOK, ("hookName", "path")),
}
