"""Reads the identities of devices, which a driver file declares, and finds those that collide. Pure; for name checks and the vocabulary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

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
    return _collisions(slices, file, lambda each: identity_of(each.description, file), file.identity_attribute)


def name_collisions(slices: Iterable[Object], file: DriverFile) -> list[str]:
    """Describe the ordinary devices that have the same name on a node, in different pools."""
    return _collisions(slices, file, lambda each: each.device.name, "name")


def _collisions(
    slices: Iterable[Object], file: DriverFile, identify: Callable[[PublishedDevice], str], what: str
) -> list[str]:
    by_value: dict[str, list[PublishedDevice]] = defaultdict(list)
    found = described(without_other_devices(slices, file.other_devices, file.driver))
    for each in {
        each.device: each for each in found
    }.values():  # one that is published twice does not collide with itself
        if each.device.driver == file.driver and (value := identify(each)):
            by_value[value].append(each)
    everywhere = file.is_identity_unique and what != "name"
    colliding = {value: _colliding(devices, everywhere=everywhere) for value, devices in sorted(by_value.items())}
    return [_text(value, devices, what) for value, devices in colliding.items() if devices]


def _colliding(devices: list[PublishedDevice], *, everywhere: bool) -> list[PublishedDevice]:
    """Return those of the devices that some container cannot tell from another one."""

    def collides(one: PublishedDevice) -> bool:
        return any(everywhere or _share_a_node(one, other) for other in devices if other is not one)

    return [each for each in devices if collides(each)]


def _share_a_node(one: PublishedDevice, other: PublishedDevice) -> bool:
    """Return True if a node can use both. Devices of two pools that have node selectors may be far apart."""
    if one.nodes & other.nodes or one.is_everywhere or other.is_everywhere:
        return True
    return not (one.nodes or other.nodes) and one.device.pool == other.device.pool


def _text(value: str, devices: list[PublishedDevice], what: str) -> str:
    names = sorted(_named(each) for each in devices)
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f"{' and '.join([*names[:_SHOWN], *more])} have the same {what} {value}"


def _named(device: PublishedDevice) -> str:
    pool = f"pool {device.device.pool}"
    where = f"{device.node}, {pool}" if device.device.pool != device.node else device.node
    return f"{device.device.name} of {where if device.node else pool}"
