"""Find DeviceClasses of a driver file that select none of the devices that the driver publishes. Used by `all_checks`.

The selectors are evaluated here as far as possible. A class is reported only if the scheduler, too, finds no device for it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from testbed.errors import WaitTimeout, did_you_mean
from testbed.kube.client import Object
from testbed.models.names import short_name, value_of
from testbed.onboarding.checks.finding import Blame, Finding
from testbed.onboarding.discovery.inference.selectors import selects
from testbed.vocabulary.observing.diagnosis import describe_pod, lacks_devices
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import Budget, NotYet, eventually

_NAME = "check"
_SCHEDULED = Budget("pods are scheduled", 10, "the scheduler's first attempt takes less than a second")
_ATTRIBUTE = re.compile(r"""attributes\[["']([^"']+)["']\]\.?\??\.?\[?["']?(\w+)""")
_SHOWN = 4


def class_findings(world: World) -> list[Finding]:
    """Return a finding for each class that exists, while no device matches its selectors. Without devices nothing is known."""
    devices = [each for part in world.slices() for each in part["spec"].get("devices") or ()]
    found = {each["metadata"]["name"]: each for each in world.kube.list(RESOURCE, "DeviceClass")}
    suspects = {
        key: found[name]
        for key, name in _classes(world).items()
        if name in found
        and devices
        and all(selects(found[name], world.driver_file.driver, each) is False for each in devices)
    }
    empty = _without_device(world, [each["metadata"]["name"] for each in suspects.values()]) if suspects else ()
    return [
        Finding(Blame.FILE, _explain(world, each, devices), key)
        for key, each in suspects.items()
        if each["metadata"]["name"] in empty
    ]


def _classes(world: World) -> Mapping[str, str]:
    """Return the classes by their keys. Fake hardware may lack special devices that its driver file names."""
    file = world.driver_file
    ordinary = {f"spec.devices.classes[{number}]": name for number, name in enumerate(file.devices.classes)}
    special = file.classes.model_dump(by_alias=True, exclude_none=True) if file.hardware == "unknown" else {}
    return {**ordinary, **{f"spec.optional.{key}.class": name for key, name in special.items()}}


def _without_device(world: World, classes: Sequence[str]) -> set[str]:
    """Return the classes for which the scheduler finds no device."""
    with new_scenario(replace(world, manifests=Path(__file__).parent), _NAME) as scenario:
        scenario.apply("classes.yaml", classes=list(classes))
        with contextlib.suppress(WaitTimeout):
            eventually(lambda: _check_scheduled(scenario), "the pods to be scheduled", _SCHEDULED, longest_pause=0.2)
        pods = world.kube.list("v1", "Pod", scenario.namespace)
    numbers = {int(pod["metadata"]["name"].rpartition("-")[2]) for pod in pods if lacks_devices(pod)}
    return {name for number, name in enumerate(classes) if number in numbers}


def _check_scheduled(scenario: Scenario) -> None:
    pods = scenario.world.kube.list("v1", "Pod", scenario.namespace)
    undecided = [each for each in pods if not each["spec"].get("nodeName") and not lacks_devices(each)]
    if undecided:
        raise NotYet("; ".join(map(describe_pod, undecided)))


def _explain(world: World, device_class: Object, devices: Sequence[Object]) -> str:
    driver, name = world.driver_file.driver, device_class["metadata"]["name"]
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    text = " && ".join(str((each.get("cel") or {}).get("expression", "")) for each in selectors)
    there = "; ".join(_published(text, driver, devices))
    return f"DeviceClass {name} selects none of the {len(devices)} devices that {driver} publishes: {text}" + (
        f"; {there}" if there else ""
    )


def _published(text: str, driver: str, devices: Sequence[Object]) -> Iterator[str]:
    """Yield what devices have in the attributes that selectors name."""
    known = {short_name(name, driver) for each in devices for name in each.get("attributes") or {}}
    for domain, attribute in dict.fromkeys(_ATTRIBUTE.findall(text)):
        name = short_name(f"{domain}/{attribute}", driver)
        found = [value_of(name, each.get("attributes") or {}, driver) for each in devices]
        values = sorted({str(next(iter(each.values()))) for each in found if each})
        if values:
            more = f" and {len(values) - _SHOWN} more" if values[_SHOWN:] else ""
            yield f"their {name} is {', '.join(values[:_SHOWN])}{more}"
        else:
            yield f"none has an attribute {name}{f'; {hint}' if (hint := did_you_mean(name, known)) else ''}"
