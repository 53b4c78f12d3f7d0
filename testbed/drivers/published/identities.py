"""Reads the identities of devices, which a driver file declares, and finds those that collide. Pure; for name checks and the vocabulary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from testbed.drivers.published.record import PublishedDevice, described
from testbed.drivers.published.slices import without_other_devices
from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile
from testbed.models.names import value_of

_SHOWN = 4


def identity_of(description: Object, file: DriverFile) -> str:
    """Return the value of the identity attribute of a published device, or ''."""
    value = value_of(file.identity_attribute, description.get("attributes", {}), file.driver)
    return str(next(iter(value.values()))) if value else ""


def identity_collisions(slices: Iterable[Object], file: DriverFile) -> list[str]:
    """Describe the ordinary devices that have the same identity within the scope that the driver file declares."""
    by_value: dict[str, list[PublishedDevice]] = defaultdict(list)
    found = described(without_other_devices(slices, file.other_devices, file.driver))
    for each in {
        each.device: each for each in found
    }.values():  # one that is published twice does not collide with itself
        if each.device.driver == file.driver and (identity := identity_of(each.description, file)):
            by_value[identity].append(each)
    return [_text(value, found, file) for value, found in sorted(by_value.items()) if _collide(found, file)]


def _collide(devices: list[PublishedDevice], file: DriverFile) -> bool:
    pairs = ((one, other) for index, one in enumerate(devices) for other in devices[:index])
    return any(file.is_identity_unique or _share_a_node(one, other) for one, other in pairs)


def _share_a_node(one: PublishedDevice, other: PublishedDevice) -> bool:
    """Return True if a node can use both. Devices of two pools that have node selectors may be far apart."""
    if one.nodes & other.nodes or one.is_everywhere or other.is_everywhere:
        return True
    return not (one.nodes or other.nodes) and one.device.pool == other.device.pool


def _text(value: str, devices: list[PublishedDevice], file: DriverFile) -> str:
    names = sorted(f"{each.device.name} of {each.node or f'pool {each.device.pool}'}" for each in devices)
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f"{' and '.join([*names[:_SHOWN], *more])} have the same {file.identity_attribute} {value}"
