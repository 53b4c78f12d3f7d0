"""Keys of driver files that are validated, but that this version cannot act on. `driver_file` refuses files that need them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from testbed.models.document import Location

if TYPE_CHECKING:
    from testbed.models.driver_file import DriverSpec

_USE_COMMAND = "use command and lines, or env"


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
    install, probe = spec.install, spec.probe
    return {
        "install.process": (install and install.process, "use manifests"),
        "install.previous": (install and install.previous, "remove it"),
        "devices.classes": (len(spec.devices.classes) > 1, "use one class, and a driver file for each further class"),
        "probe.deviceNode": (probe.device_node, _USE_COMMAND),
        "probe.mount": (probe.mount, _USE_COMMAND),
        "probe.networkInterface": (probe.network_interface, _USE_COMMAND),
        "probe.cpuset": (probe.cpuset, _USE_COMMAND),
        "probe.metadata": (probe.metadata, _USE_COMMAND),
        "probe.image": (probe.image, "use a command that busybox has"),
        "probe.without": (probe.without, "remove it"),
        "budgets": (spec.budgets, "remove it"),
    }
