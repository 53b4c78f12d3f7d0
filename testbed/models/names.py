"""The rules for names, with words for what is wrong; `config` and `driver_file` build their types from them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from testbed.errors import UsageError

TESTBED_NAME = r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"
_QUANTITY = r"^(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$"
_FILE_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,200}[A-Za-z0-9])?"
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_KEY = r"([\w.-]+/)?[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?"
_VALUES = r"\(\s*[\w.-]*(\s*,\s*[\w.-]*)*\s*\)"
_TERM = rf"\s*(!?\s*{_KEY}|{_KEY}\s*(==?|!=)\s*[\w.-]*|{_KEY}\s+(not)?in\s+{_VALUES})\s*"


def check_name(name: str) -> str:
    """The name of a testbed, or a UsageError that says what is wrong with it."""
    try:
        return _testbed_name(name)
    except ValueError as bad:
        raise UsageError(f"--name {bad}", hint="lower-case letters, digits and dashes, like my-gpus-2") from bad


def is_testbed_name(text: str) -> bool:
    """Whether a testbed can have that name."""
    return re.fullmatch(TESTBED_NAME, text) is not None


def safe_name(name: str) -> str:
    """A name from an API as the name of a file. What would lead elsewhere is refused by changing it."""
    if re.fullmatch(_FILE_NAME, name) and ".." not in name:
        return name
    return "unsafe-" + re.sub(r"[^A-Za-z0-9]", "_", name)[:80]


def _testbed_name(name: str) -> str:
    if is_testbed_name(name):
        return name
    raise ValueError(f"is {_shown(name)}, {_name_problem(name)}")


def _name_problem(name: str) -> str:
    if not name:
        return "but must not be empty"
    if "/" in name or "\\" in name or name.startswith((".", "~")):
        return "which is a path; a testbed has a plain name"
    if len(name) > 32:
        return f"which has {len(name)} characters; 32 are the most"
    if is_testbed_name(name.lower()):
        return f"but must be lower-case: {name.lower()}"
    return "but must be lower-case letters, digits and dashes, with a letter or digit first and last"


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def _dns(longest: int, *, dots: bool) -> AfterValidator:
    pattern = re.compile(rf"{_LABEL}(\.{_LABEL})*" if dots else _LABEL)
    kind = "name with dots, like gpu.example.com" if dots else "name, like my-namespace"

    def check(name: str) -> str:
        if len(name) > longest:
            raise ValueError(f"has {len(name)} characters; {longest} are the most")
        if not pattern.fullmatch(name):
            raise ValueError(f"is {_shown(name)}, but must be a DNS {kind}")
        return name

    return AfterValidator(check)


def _selector(text: str) -> str:
    if not re.fullmatch(rf"{_TERM}(,{_TERM})*", text):
        raise ValueError(f"is {_shown(text)}, but must be a label selector, like app=my-driver")
    return text


def _quantity(text: str) -> str:
    if not re.fullmatch(_QUANTITY, text):
        raise ValueError(f"is {_shown(text)}, but must be a quantity, like 8Gi")
    return text


TestbedName = Annotated[str, AfterValidator(_testbed_name), WithJsonSchema({"type": "string", "pattern": TESTBED_NAME})]
DriverName = Annotated[str, _dns(63, dots=True)]
ObjectName = Annotated[str, _dns(253, dots=True)]
LabelName = Annotated[str, _dns(63, dots=False)]
Selector = Annotated[str, AfterValidator(_selector)]
Quantity = Annotated[str, AfterValidator(_quantity), WithJsonSchema({"type": "string", "pattern": _QUANTITY})]
