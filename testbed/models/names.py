"""The types for names, selectors and quantities, with messages for invalid values; `config` and `driver_file` use them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, WithJsonSchema

from testbed.errors import UsageError

T = TypeVar("T")
TESTBED_NAME = r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"
_QUANTITY = r"^(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$"
_FILE_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,200}[A-Za-z0-9])?"
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_KEY = r"([\w.-]+/)?[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?"
_VALUES = r"\(\s*[\w.-]*(\s*,\s*[\w.-]*)*\s*\)"
_TERM = rf"\s*(!?\s*{_KEY}|{_KEY}\s*(==?|!=)\s*[\w.-]*|{_KEY}\s+(not)?in\s+{_VALUES})\s*"


def check_name(name: str) -> str:
    """Return the name of a testbed. Raise UsageError if it is not valid."""
    try:
        return _testbed_name(name)
    except ValueError as bad:
        raise UsageError(f"--name {bad}", hint="lower-case letters, digits and dashes, like my-gpus-2") from bad


def is_testbed_name(text: str) -> bool:
    """Return True if a testbed can have that name."""
    return re.fullmatch(TESTBED_NAME, text) is not None


def safe_name(name: str) -> str:
    """Return a name from an API as a file name. Names that would lead to another folder are changed."""
    if re.fullmatch(_FILE_NAME, name) and ".." not in name:
        return name
    return "unsafe-" + re.sub(r"[^A-Za-z0-9]", "_", name)[:80]


def full_name(name: str, driver: str) -> str:
    """Return the name of an attribute or a capacity with its domain. A name without one belongs to the driver's own domain."""
    return name if "/" in name else f"{driver}/{name}"


def short_name(name: str, driver: str) -> str:
    """Return the name of an attribute or a capacity without the driver's own domain."""
    return name.removeprefix(f"{driver}/")


def published_name(name: str, published: Iterable[str], driver: str) -> str | None:
    """Return the name of an attribute or a capacity as it is published: both may lack the driver's domain. None if it is not published."""
    full = full_name(name, driver)
    return next((each for each in published if full_name(each, driver) == full), None)


def value_of(name: str, published: Mapping[str, T], driver: str) -> T | None:
    """Return the value of an attribute or a capacity, whose name has the driver's domain or not; None if it is not published."""
    found = published_name(name, published, driver)
    return None if found is None else published[found]


def _testbed_name(name: str) -> str:
    if is_testbed_name(name):
        return name
    raise ValueError(f"is {_shortened(name)}, {_name_problem(name)}")


def _name_problem(name: str) -> str:
    if not name:
        return "but must not be empty"
    if "/" in name or "\\" in name or name.startswith((".", "~")):
        return "which is a path, but must be a plain name"
    if len(name) > 32:
        return f"which has {len(name)} characters, but must have at most 32"
    if is_testbed_name(name.lower()):
        return f"but must be lower case: {name.lower()}"
    return "but must be lower-case letters, digits and dashes, and begin and end with a letter or digit"


def _shortened(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def _dns(longest: int, *, dots: bool) -> AfterValidator:
    pattern = re.compile(rf"{_LABEL}(\.{_LABEL})*" if dots else _LABEL)
    characters = "lower-case letters, digits, dashes"
    kind = f"subdomain: {characters} and dots, like gpu.example.com" if dots else f"label: {characters}, like my-driver"

    def check(name: str) -> str:
        if len(name) > longest:
            raise ValueError(f"has {len(name)} characters, but must have at most {longest}")
        if not pattern.fullmatch(name):
            raise ValueError(f"is {_shortened(name)}, but must be a DNS {kind}")
        return name

    return AfterValidator(check)


def _selector(text: str) -> str:
    if not re.fullmatch(rf"{_TERM}(,{_TERM})*", text):
        raise ValueError(f"is {_shortened(text)}, but must be a label selector, like app=my-driver")
    return text


def _quantity(text: str) -> str:
    if not re.fullmatch(_QUANTITY, text):
        raise ValueError(f"is {_shortened(text)}, but must be a quantity, like 8Gi")
    return text


TestbedName = Annotated[str, AfterValidator(_testbed_name), WithJsonSchema({"type": "string", "pattern": TESTBED_NAME})]
DriverName = Annotated[str, _dns(63, dots=True)]
ObjectName = Annotated[str, _dns(253, dots=True)]
LabelName = Annotated[str, _dns(63, dots=False)]
Selector = Annotated[str, AfterValidator(_selector)]
Quantity = Annotated[str, AfterValidator(_quantity), WithJsonSchema({"type": "string", "pattern": _QUANTITY})]
