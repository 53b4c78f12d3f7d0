"""Keys of driver files that are validated, but that this version cannot act on. `driver_file` refuses files that need them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from testbed.models.document import Location

if TYPE_CHECKING:
    from testbed.models.driver_file import DriverSpec


class UnsupportedKey(NamedTuple):
    """A key that this version cannot act on, and what to do."""

    location: Location
    advice: str


def unsupported_keys(spec: DriverSpec) -> Iterator[UnsupportedKey]:
    """Yield the keys with a value that a run would need, and that this version cannot act on."""
    for path, (value, advice) in _values(spec).items():
        if value:
            yield UnsupportedKey(("spec", *path.split(".")), advice)


def _values(spec: DriverSpec) -> dict[str, tuple[object, str]]:
    return {
        "budgets": (spec.budgets, "remove it"),
    }


def known_limits(spec: DriverSpec) -> dict[str, str]:
    """Return the keys under `spec` that this version cannot act on, whatever their value, with what to do. For docs/driver-file.md."""
    return {path: advice for path, (_, advice) in _values(spec).items()}
