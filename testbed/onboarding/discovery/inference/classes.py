"""Finds the DeviceClasses of a driver's ordinary devices, and those of special devices. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import PublishedDevice
from testbed.onboarding.discovery.inference.selectors import selects

# The keys of `optional` in driver files, with the field of ResourceSlices that devices of this kind have.
_KINDS: Mapping[str, str] = {
    "partitions": "consumesCounters",
    "capacity": "allowMultipleAllocations",
    "binding": "bindingConditions",
    "taints": "taints",
}


@dataclass(frozen=True)
class Classes:
    """The DeviceClasses of a driver: of ordinary devices, of special devices by kind, and those that could not be evaluated.

    `further` are classes of plain devices that the ordinary ones do not select, with the number of these devices.
    """

    ordinary: tuple[str, ...] = ()
    further: Mapping[str, int] = field(default_factory=dict)
    special: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    selected: tuple[PublishedDevice, ...] = ()
    others: tuple[PublishedDevice, ...] = ()


def kinds(device: PublishedDevice) -> frozenset[str]:
    """Return which kinds of special devices a device belongs to; none for a plain device."""
    found = {
        **device.content,
        "taints": [each for each in device.content.get("taints") or () if each["effect"] != "None"],
    }
    return frozenset(kind for kind, field in _KINDS.items() if found.get(field))


def classes_of(
    driver: str, classes: Iterable[Object], devices: Collection[PublishedDevice], also: Iterable[str] = ()
) -> Classes:
    """Return the classes that select the driver's devices. The ordinary one selects the most plain devices; `also` are ordinary, too.

    If no device is plain, it is the class that selects the most devices.
    """
    every = list(classes)
    verdicts = {
        each["metadata"]["name"]: [selects(each, driver, device.content) for device in devices] for each in every
    }
    chosen = {
        name: [device for device, selected in zip(devices, found, strict=True) if selected]
        for name, found in sorted(verdicts.items())
        if None not in found and any(found)
    }
    named = {each["metadata"]["name"] for each in every if driver in json.dumps(each.get("spec"))}
    unknown = tuple(name for name, found in sorted(verdicts.items()) if None in found and name in named)
    plain = [each for each in devices if not kinds(each)] or list(devices)
    best = _best(chosen, plain)
    ordinary = (best, *also) if best else ()
    selected = tuple(each for each in devices if any(each in chosen[name] for name in ordinary))
    left = [each for each in plain if each not in selected]
    further = {name: count for name, of in chosen.items() if (count := sum(each in of for each in left))}
    others = tuple(each for each in devices if each not in selected)
    return Classes(ordinary, further, _special(chosen, ordinary), unknown, selected, others)


def _best(chosen: Mapping[str, Sequence[PublishedDevice]], plain: Collection[PublishedDevice]) -> str:
    """Return the class with the most plain devices; of several, the one with the fewest others."""
    return max(chosen, key=lambda name: (sum(each in chosen[name] for each in plain), -len(chosen[name])), default="")


def _special(chosen: Mapping[str, Sequence[PublishedDevice]], ordinary: Collection[str]) -> dict[str, str]:
    """Return a class for each kind of special devices: all devices that it selects are of that kind."""
    found: dict[str, str] = {}
    for kind in _KINDS:
        of_kind = [name for name, devices in chosen.items() if all(kind in kinds(each) for each in devices)]
        if of_kind:
            found[kind] = max(sorted(of_kind), key=lambda name: (name not in ordinary, len(chosen[name])))
    return found
