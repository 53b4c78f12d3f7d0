"""Driver files with other values."""

from __future__ import annotations

from typing import Any

from testbed.models.driver_file import DriverFile


def with_values(driver_file: DriverFile, section: str = "", **changed: Any) -> DriverFile:
    """Return the driver file with other values in its spec, or in a section of it, such as devices.examples. Names are those of fields."""
    return driver_file.model_copy(
        update={"spec": _changed(driver_file.spec, [*filter(None, section.split("."))], changed)}
    )


def _changed(model: Any, path: list[str], changed: dict[str, Any]) -> Any:
    if not path:
        return model.model_copy(update=changed)
    name, *rest = path
    return model.model_copy(update={name: _changed(getattr(model, name), rest, changed)})
