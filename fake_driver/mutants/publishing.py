"""Wrong ways to make the driver and its devices known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_driver.lookout import Listed, Seen
from fake_driver.publisher import Publisher
from fake_driver.slices import Object
from fake_driver.wiring import Parts


def publish_attributes_of_another_device(right: Parts) -> Parts:
    """In the slices each device bears the attributes of its neighbour."""

    def shifted(wanted: list[Object]) -> list[Object]:
        return [{**each, "spec": {**each["spec"], **_shifted(each["spec"])}} for each in wanted]

    return replace(right, shaped=shifted)


def register_on_odd_nodes(right: Parts) -> Parts:
    """The kubelet learns of the driver only on nodes whose name ends with an odd number."""
    return replace(right, registers=right.inventory.pool[-1:] in set("13579"))


def publish_a_generation_too_low(right: Parts) -> Parts:
    """A pool that has changed is published under the generation that it had before."""
    return replace(right, publisher=_SameGeneration)


def never_heal_slices(right: Parts) -> Parts:
    """What others delete or change after the first write stays deleted or changed."""
    return replace(right, publisher=_Blind)


class _SameGeneration(Publisher):
    def _outward(self, slice_: Object) -> Object:
        pool = {**slice_["spec"]["pool"], "generation": 1}
        return super()._outward({**slice_, "spec": {**slice_["spec"], "pool": pool}})


class _Blind(Publisher):
    def _take(self, news: Any) -> None:
        if not (self.published.is_set() and isinstance(news, Seen | Listed)):
            super()._take(news)


def _shifted(spec: Object) -> Object:
    devices = spec.get("devices", [])
    rotated = [*devices[1:], *devices[:1]]
    return {
        "devices": [{**one, "attributes": other["attributes"]} for one, other in zip(devices, rotated, strict=True)]
    }


ALL = (publish_attributes_of_another_device, register_on_odd_nodes, publish_a_generation_too_low, never_heal_slices)
