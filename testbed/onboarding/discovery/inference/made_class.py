"""Makes a DeviceClass for a driver whose manifests have none. Pure; the user chooses which devices it selects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import PublishedDevice
from testbed.onboarding.discovery.inference.identities import preferred

_MOST_GROUPS = 6
_KINDS = ("type", "kind", "product", "model")
_ALL = "all devices"


@dataclass(frozen=True)
class DeviceGroups:
    """The groups of devices from which the user chooses; `values` are those of an attribute by the text of the choice."""

    attribute: str = ""
    values: dict[str, object] = field(default_factory=dict)
    default: str = _ALL

    @property
    def choices(self) -> list[str]:
        """Return the texts of the choices."""
        return [*self.values, _ALL]


def groups(devices: Collection[PublishedDevice]) -> DeviceGroups:
    """Return groups by the attribute that best separates kinds of devices. The default is the largest group that all nodes have."""
    names = {name for each in devices for name, value in each.attributes.items() if isinstance(value, str | bool)}
    separating = [
        name for name in names if 1 < len({str(each.attributes.get(name)) for each in devices}) <= _MOST_GROUPS
    ]
    counted = {
        name: Counter(each.attributes[name] for each in devices if name in each.attributes) for name in separating
    }
    # An attribute with as many values as devices tells devices apart, not kinds of devices.
    kinds = {name: found for name, found in counted.items() if max(found.values()) > 1}
    name = preferred(kinds, _KINDS)
    if not name or name.rpartition("/")[2].lower() not in _KINDS:
        return DeviceGroups()
    values = {f"{name}={value}": value for value, _ in kinds[name].most_common()}
    return DeviceGroups(
        name, values, next((text for text, value in values.items() if _on_all_nodes(name, value, devices)), _ALL)
    )


def class_manifest(driver: str, name: str, attribute: str = "", value: object = None) -> Object:
    """Return a DeviceClass of a driver's devices; with an attribute, only of those with this value."""
    terms = [f'device.driver == "{driver}"']
    if attribute:
        domain, _, short = attribute.rpartition("/")
        empty = "false" if isinstance(value, bool) else '""'
        terms.append(f'device.attributes["{domain or driver}"].?{short}.orValue({empty}) == {json.dumps(value)}')
    spec = {"selectors": [{"cel": {"expression": " && ".join(terms)}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _on_all_nodes(name: str, value: object, devices: Collection[PublishedDevice]) -> bool:
    return {each.node for each in devices} == {each.node for each in devices if each.attributes.get(name) == value}
