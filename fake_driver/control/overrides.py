"""How devices differ at run time from what the hardware file says, as values. Pure; `live` keeps them and makes them true.

Each verb takes what is altered of one device and what was request for, notes in the section what is wrong, and gives what is altered then.
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
    """How one device, and with it its parts, differs. `lifted` are keys of taints in the hardware file that count no more."""

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
    """The devices of a pool as they are now."""
    changes = [
        DeviceChange((pool,), (name,), one.attributes, one.capacity, one.taints, one.absent)
        for name, one in overrides.items()
    ]
    return apply_changes((_lifted(device, overrides) for device in devices), changes, pool)


def health_of(device: Device, overrides: Overrides) -> Health | None:
    """What was said of a device's health, or else of the whole that it is a part of."""
    found = (overrides.get(name, NONE).health for name in (device.name, device.parent))
    return next((health for health in found if health), None)


def as_data(one: Override) -> Data:
    """What `read` reads; without what is as the file says."""
    said: Data = {
        "absent": one.absent,
        "attributes": {name: _plain(value) for name, value in one.attributes.items()},
        "capacity": dict(one.capacity),
        "taints": [
            {"key": each.key, **({"value": each.value} if each.value else {}), "effect": each.effect}
            for each in one.taints
        ],
        "lifted": list(one.lifted),
        "health": {"status": one.health.status, "message": one.health.message} if one.health else {},
    }
    return {key: value for key, value in said.items() if value}


def parse(section: Section) -> Override:
    """What was kept in a file."""
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


def _lifted(device: Device, overrides: Overrides) -> Device:
    """The device without those taints of the file that were taken away, or that a newer one of the same key and effect replaces."""
    mine = [overrides.get(name, NONE) for name in (device.name, device.parent)]
    gone = {key for one in mine for key in one.lifted}
    newer = {(taint.key, taint.effect) for one in mine for taint in one.taints}
    remaining = (each for each in device.taints if each.key not in gone and (each.key, each.effect) not in newer)
    return replace(device, taints=tuple(remaining))


def _unplug(before: Override, _device: Device, _asked: Section) -> Override:
    return replace(before, absent=True)


def _plug(before: Override, _device: Device, _asked: Section) -> Override:
    return replace(before, absent=False)


def _restore(_before: Override, _device: Device, _asked: Section) -> Override:
    return NONE


def _set(before: Override, device: Device, request: Section) -> Override:
    """New values; a name that the device has not is probably misspelt, unless `new` says otherwise."""
    attributes = device_fields.attributes(request)
    amounts, policies = device_fields.capacity(request)
    if policies:
        request.add_problem("capacity", "cannot change a requestPolicy")
    if not device_fields.boolean(request, "new"):
        _misspelt(request, "attributes", attributes, {**device.attributes, **before.attributes})
        _misspelt(request, "capacity", amounts, {**device.capacity, **before.capacity})
    if not (request.content.get("attributes") or request.content.get("capacity")):
        request.add_problem("", "names neither an attribute nor a capacity")
    if amounts and device.parent:
        request.add_problem(
            "capacity", f"of {device.name} follows from its profile, for it is a part of {device.parent}"
        )
    return replace(before, attributes={**before.attributes, **attributes}, capacity={**before.capacity, **amounts})


def _taint(before: Override, _device: Device, request: Section) -> Override:
    taint = device_fields.taint(
        Section("", {k: v for k, v in request.content.items() if k in _OF_TAINT}, request.problems)
    )
    request.known_keys |= _OF_TAINT
    others = (each for each in before.taints if (each.key, each.effect) != (taint.key, taint.effect))
    return replace(before, taints=(*others, taint))


def _untaint(before: Override, device: Device, request: Section) -> Override:
    """All taints with that key are gone, also those of the hardware file."""
    key = request.get("key", str) or ""
    in_file = {taint.key for taint in device.taints} - set(before.lifted)
    here = {*in_file, *(taint.key for taint in before.taints)}
    if key and key not in here and key not in before.lifted:
        request.add_problem(
            "key", f"{key!r} is no taint of {device.name}; {suggestion(key, here) if here else 'it has none'}"
        )
    lifted = (*before.lifted, key) if key in in_file else before.lifted
    return replace(before, taints=tuple(each for each in before.taints if each.key != key), lifted=lifted)


def _say_health(before: Override, _device: Device, request: Section) -> Override:
    return replace(before, health=_health(request))


VERBS: dict[str, Verb] = {
    "unplug": _unplug,
    "plug": _plug,
    "set": _set,
    "taint": _taint,
    "untaint": _untaint,
    "health": _say_health,
    "restore": _restore,
}
_OF_TAINT = frozenset({"key", "value", "effect"})


def _health(request: Section) -> Health:
    said = (request.get("status", str) or "").upper()
    if said and said not in _STATES:
        request.add_problem("status", f"is {said.lower()!r}; {suggestion(said.lower(), map(str.lower, _STATES))}")
    return Health(said or UNKNOWN, request.printable_line("message"))


def _misspelt(request: Section, key: str, given: Iterable[str], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            request.add_problem(f"{key}.{name}", f"is not there yet; {_choices(name, known)}; new: true adds it")


def _choices(name: str, known: Mapping[str, Any]) -> str:
    return suggestion(name, known) if known else "the device has none"


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return {"version": value.text} if isinstance(value, Version) else value


def non_empty(overrides: Overrides) -> Iterator[tuple[str, Override]]:
    """Those that say something."""
    return ((name, one) for name, one in overrides.items() if one != NONE)
