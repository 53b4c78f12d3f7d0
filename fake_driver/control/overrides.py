"""Run-time overrides of what the hardware file says about devices. Pure; live hardware saves and applies them.

Each verb gets the current override of a device and a request. It returns the new override, and adds problems to the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fake_driver.devices.health import HEALTHY, UNHEALTHY, UNKNOWN, Health
from fake_driver.devices.model import Attributes, Device, DeviceChange, Quantities, Taint, Value, Version
from fake_driver.errors import suggestion
from fake_driver.hardware import device_fields
from fake_driver.hardware.pools import apply_changes
from fake_driver.strict_decoding import Section

_STATES = (HEALTHY, UNHEALTHY, UNKNOWN)
Data = dict[str, Any]


@dataclass(frozen=True)
class Override:
    """How a device and its partitions differ from the hardware file. `lifted` are the keys of taints in the file that were removed."""

    absent: bool = False
    attributes: Attributes = field(default_factory=dict)
    capacity: Quantities = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    lifted: tuple[str, ...] = ()
    health: Health | None = None


Overrides = Mapping[str, Override]
Verb = Callable[[Override, Device, Section], Override]
NONE = Override()


def with_overrides(devices: Iterable[Device], overrides: Overrides, pool: str) -> tuple[Device, ...]:
    """Return the devices of a pool with their overrides."""
    changes = [
        DeviceChange((pool,), (name,), override.attributes, override.capacity, override.taints, override.absent)
        for name, override in overrides.items()
    ]
    return apply_changes((_without_replaced_taints(device, overrides) for device in devices), changes, pool)


def health_of(device: Device, overrides: Overrides) -> Health | None:
    """Return the overridden health of a device, or else of the device that it is a partition of; None if there is none."""
    found = (overrides.get(name, NONE).health for name in (device.name, device.parent))
    return next((health for health in found if health), None)


def as_data(override: Override) -> Data:
    """Return an override in the form that `parse` reads, without default values."""
    data: Data = {
        "absent": override.absent,
        "attributes": {name: _plain(value) for name, value in override.attributes.items()},
        "capacity": dict(override.capacity),
        "taints": [
            {"key": each.key, **({"value": each.value} if each.value else {}), "effect": each.effect}
            for each in override.taints
        ],
        "lifted": list(override.lifted),
        "health": {"status": override.health.status, "message": override.health.message} if override.health else {},
    }
    return {key: value for key, value in data.items() if value}


def parse(section: Section) -> Override:
    """Return a saved override, and add its problems to the section."""
    amounts, _ = device_fields.capacity(section)
    found = Override(
        device_fields.boolean(section, "absent"),
        device_fields.attributes(section),
        amounts,
        device_fields.taints(section),
        device_fields.strings(section, "lifted"),
        _health(section.section("health")) if "health" in section.content else None,
    )
    section.known_keys.add("health")
    section.check_unknown_keys()
    return found


def _without_replaced_taints(device: Device, overrides: Overrides) -> Device:
    """Return the device without the taints of the file that were removed, or are replaced by one with the same key and effect."""
    both = [overrides.get(name, NONE) for name in (device.name, device.parent)]
    lifted = {key for override in both for key in override.lifted}
    replaced = {(taint.key, taint.effect) for override in both for taint in override.taints}
    remaining = (each for each in device.taints if each.key not in lifted and (each.key, each.effect) not in replaced)
    return replace(device, taints=tuple(remaining))


def _unplug(before: Override, _device: Device, _request: Section) -> Override:
    return replace(before, absent=True)


def _plug(before: Override, _device: Device, _request: Section) -> Override:
    return replace(before, absent=False)


def _restore(_before: Override, _device: Device, _request: Section) -> Override:
    return NONE


def _set(before: Override, device: Device, request: Section) -> Override:
    """Set attributes and capacities. A name that the device does not have is a problem, unless `new` is true."""
    attributes = device_fields.attributes(request)
    amounts, policies = device_fields.capacity(request)
    if policies:
        request.add_problem("capacity", "cannot change a requestPolicy")
    if not device_fields.boolean(request, "new"):
        _check_names(request, "attributes", attributes, {**device.attributes, **before.attributes})
        _check_names(request, "capacity", amounts, {**device.capacity, **before.capacity})
    if not (request.content.get("attributes") or request.content.get("capacity")):
        request.add_problem("", "must contain attributes or capacity")
    if amounts and device.parent:
        request.add_problem(
            "capacity",
            f"of {device.name} cannot change: it is a partition of {device.parent}, and its profile determines the capacity",
        )
    return replace(before, attributes={**before.attributes, **attributes}, capacity={**before.capacity, **amounts})


def _taint(before: Override, _device: Device, request: Section) -> Override:
    taint = device_fields.taint(
        Section("", {k: v for k, v in request.content.items() if k in _TAINT_KEYS}, request.problems)
    )
    request.known_keys |= _TAINT_KEYS
    others = (each for each in before.taints if (each.key, each.effect) != (taint.key, taint.effect))
    return replace(before, taints=(*others, taint))


def _untaint(before: Override, device: Device, request: Section) -> Override:
    """Remove all taints with this key, including those of the hardware file."""
    key = request.get("key", str) or ""
    in_file = {taint.key for taint in device.taints} - set(before.lifted)
    known = {*in_file, *(taint.key for taint in before.taints)}
    if key and key not in known and key not in before.lifted:
        request.add_problem(
            "key",
            f"{key!r} is not the key of a taint of {device.name}; {suggestion(key, known) if known else 'it has none'}",
        )
    lifted = (*before.lifted, key) if key in in_file else before.lifted
    return replace(before, taints=tuple(each for each in before.taints if each.key != key), lifted=lifted)


def _set_health(before: Override, _device: Device, request: Section) -> Override:
    return replace(before, health=_health(request))


VERBS: dict[str, Verb] = {
    "unplug": _unplug,
    "plug": _plug,
    "set": _set,
    "taint": _taint,
    "untaint": _untaint,
    "health": _set_health,
    "restore": _restore,
}
_TAINT_KEYS = frozenset({"key", "value", "effect"})


def _health(request: Section) -> Health:
    status = (request.get("status", str) or "").upper()
    if status and status not in _STATES:
        request.add_problem("status", f"is {status.lower()!r}; {suggestion(status.lower(), map(str.lower, _STATES))}")
    return Health(status or UNKNOWN, request.printable_line("message"))


def _check_names(request: Section, key: str, given: Iterable[str], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            request.add_problem(f"{key}.{name}", f"is unknown; {_choices(name, known)}; new: true adds it")


def _choices(name: str, known: Mapping[str, Any]) -> str:
    return suggestion(name, known) if known else "the device has none"


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return {"version": value.text} if isinstance(value, Version) else value


def non_empty(overrides: Overrides) -> Iterator[tuple[str, Override]]:
    """Return the overrides that change something."""
    return ((name, override) for name, override in overrides.items() if override != NONE)
