"""The hardware of the driver under test: change it while pods run, and observe the driver's pools. Changes are undone after the test.

Only for drivers whose driver file has spec.control.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from testbed.drivers import live_control
from testbed.drivers.published.pool_transitions import PoolState, pool_state
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, TestbedError
from testbed.kube.client import Object
from testbed.models.names import published_name
from testbed.vocabulary import budgets
from testbed.vocabulary.driver.pool_changes import PoolChange, PoolWatch
from testbed.vocabulary.observing.observation import Diagnosis
from testbed.vocabulary.observing.queries import eventually_or_explain
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet

_NOT_PUBLISHED = Diagnosis("the driver does not publish the change of its hardware")


@dataclass(frozen=True)
class Hardware:
    """The hardware of the driver under test. Each change waits until the driver has published it."""

    world: World
    originals: dict[tuple[str, str], PoolState | None] = field(
        default_factory=dict
    )  # the original state by node and pool

    def unplug(self, device: Device) -> PoolChange:
        """Remove a device from its node."""
        return self._change(device, ["unplug"], [], _is_missing, "be removed")

    def plug(self, device: Device) -> PoolChange:
        """Add a removed device again."""
        return self._change(device, ["plug"], [], _is_present, "be present")

    def set(self, device: Device, attribute: str, text: str) -> PoolChange:
        """Set an attribute to a string, under the name with which it is published."""
        self.world.slices()
        known = self.world.record.newest.get(device)
        published = known.description.get("attributes", {}) if known else {}
        name = published_name(attribute, published, device.driver) or attribute
        return self._change(device, ["set"], [f"{name}={json.dumps(text)}"], _has(text), f"have {name} {text}")

    def taint(self, device: Device, key: str, effect: str) -> PoolChange:
        """Taint a device."""
        return self._change(device, ["taint"], [f"{key}:{effect}"], _has_taint(key), f"have the taint {key}")

    def untaint(self, device: Device, key: str) -> PoolChange:
        """Remove a taint from a device."""
        return self._change(device, ["untaint"], [key], _has_no_taint(key), f"have no taint {key}")

    def set_health(self, device: Device, health: str) -> None:
        """Make a device `healthy` or `unhealthy`. It does not wait, because slices do not show health."""
        slices = self.world.slices()
        node, driver = _node_of(tuple(slices), device), self.world.driver_file.driver
        self.originals.setdefault((node, device.pool), pool_state(slices, driver, device.pool))
        live_control.run_control(self.world.kube, self.world.driver_file, node, ["health", device.name, health])

    def restore(self) -> None:
        """Undo all changes on all nodes, and wait until the pools are as before. Raise the first error at the end."""
        originals, refused = dict(self.originals), []
        self.originals.clear()
        for node in dict.fromkeys(node for node, _ in originals):
            try:
                live_control.run_control(self.world.kube, self.world.driver_file, node, ["restore"])
            except TestbedError as error:  # restore the other nodes first
                refused.append(error)
        if refused:
            raise refused[0]
        for (_, pool), before in originals.items():
            if before:
                self._wait(pool, _equals(before), f"pool {pool} to be restored")

    def _change(
        self, device: Device, verb: list[str], rest: list[str], check: Callable[[list[Object]], bool], verbs: str
    ) -> PoolChange:
        kube, driver = self.world.kube, self.world.driver_file.driver
        version, before = kube.resource_version(RESOURCE, "ResourceSlice"), tuple(self.world.slices())
        node = _node_of(before, device)
        self.originals.setdefault((node, device.pool), pool_state(before, driver, device.pool))
        live_control.run_control(kube, self.world.driver_file, node, [*verb, device.name, *rest])

        def is_published(now: PoolState) -> bool:
            return check([each for each in map(json.loads, now.devices) if each["name"] == device.name])

        self._wait(device.pool, is_published, f"the published device {device} to {verbs}")
        return PoolChange(device.pool, PoolWatch(self.world, (device.pool,), before, version))

    def _wait(self, pool: str, check: Callable[[PoolState], bool], expected: str) -> None:
        def published() -> None:
            now = pool_state(self.world.slices(), self.world.driver_file.driver, pool)
            if now is None or not check(now):
                raise NotYet(
                    f"pool {pool} has the devices {', '.join(now.names)}" if now else f"pool {pool} is incomplete"
                )

        eventually_or_explain(self.world, published, expected, budgets.POOL, _NOT_PUBLISHED)


@contextlib.contextmanager
def restored_hardware(world: World) -> Iterator[Hardware]:
    """Yield the hardware for one test, and restore it afterwards."""
    hardware = Hardware(world)
    try:
        yield hardware
    finally:
        hardware.restore()


def _node_of(slices: tuple[Object, ...], device: Device) -> str:
    for each in slices:
        if each["spec"]["pool"]["name"] == device.pool and each["spec"].get("nodeName"):
            return str(each["spec"]["nodeName"])
    raise DriverFailed(
        f"{device} is in no pool of a node", hint="tests can change only hardware that belongs to a node"
    )


def _equals(before: PoolState) -> Callable[[PoolState], bool]:
    return lambda now: now.devices == before.devices


def _is_missing(found: list[Object]) -> bool:
    return not found


def _is_present(found: list[Object]) -> bool:
    return bool(found)


def _has(text: str) -> Callable[[list[Object]], bool]:
    return lambda found: any({"string": text} in (each.get("attributes") or {}).values() for each in found)


def _has_taint(key: str) -> Callable[[list[Object]], bool]:
    return lambda found: any(key in _taints(each) for each in found)


def _has_no_taint(key: str) -> Callable[[list[Object]], bool]:
    return lambda found: bool(found) and not any(key in _taints(each) for each in found)


def _taints(device: Object) -> list[str]:
    return [each["key"] for each in device["taints"]]
