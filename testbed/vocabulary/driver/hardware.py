"""The word `hardware`: change the hardware of the driver under test while pods run, and see how its pools follow. Undone after the test.

For drivers whose driver file says with `control` how that is done; others are not judged by requirements that need it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from testbed.drivers import live_control
from testbed.drivers.published.pool_transitions import PoolState, pool_state
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed, TestbedError, WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.driver.pool_changes import PoolChange, PoolWatch
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet, eventually

_NOT_FOLLOWED = Diagnosis("the driver does not publish anew what has changed")


@dataclass(frozen=True)
class Hardware:
    """The hardware of the driver under test. Each verb waits until what is published follows."""

    world: World
    touched: dict[tuple[str, str], PoolState | None] = field(default_factory=dict)  # by node and pool, how that was

    def unplug(self, device: Device) -> PoolChange:
        """Take a device out of its node."""
        return self._change(device, ["unplug"], [], _is_gone, "be gone")

    def plug(self, device: Device) -> PoolChange:
        """Put it back."""
        return self._change(device, ["plug"], [], _is_there, "be there")

    def set(self, device: Device, attribute: str, text: str) -> PoolChange:
        """Change an attribute that is a text."""
        return self._change(
            device, ["set"], [f"{attribute}={json.dumps(text)}"], _has(text), f"have {attribute} {text}"
        )

    def taint(self, device: Device, key: str, effect: str) -> PoolChange:
        """Taint a device."""
        return self._change(device, ["taint"], [f"{key}:{effect}"], _has_taint(key), f"have the taint {key}")

    def untaint(self, device: Device, key: str) -> PoolChange:
        """Take a taint away."""
        return self._change(device, ["untaint"], [key], _has_no_taint(key), f"have no taint {key}")

    def set_health(self, device: Device, health: str) -> None:
        """How a device is from now on: healthy or unhealthy. No slice says so, so nothing is waited for."""
        slices = self.world.slices()
        node, driver = _node_of(tuple(slices), device), self.world.driver_file.driver
        self.touched.setdefault((node, device.pool), pool_state(slices, driver, device.pool))
        live_control.run_control(self.world.kube, self.world.driver_file, node, ["health", device.name, health])

    def restore(self) -> None:
        """All is as it was before the first change."""
        touched, refused = dict(self.touched), []
        self.touched.clear()
        for node in dict.fromkeys(node for node, _ in touched):
            try:
                live_control.run_control(self.world.kube, self.world.driver_file, node, ["restore"])
            except TestbedError as error:  # the other nodes are asked all the same
                refused.append(error)
        if refused:
            raise refused[0]
        for (_, pool), before in touched.items():
            if before:
                self._wait(pool, _like(before), f"pool {pool} to be as it was")

    def _change(
        self, device: Device, verb: list[str], rest: list[str], check: Callable[[list[Object]], bool], verbs: str
    ) -> PoolChange:
        kube, driver = self.world.kube, self.world.driver_file.driver
        version, before = kube.version(RESOURCE, "ResourceSlice"), tuple(self.world.slices())
        node = _node_of(before, device)
        self.touched.setdefault((node, device.pool), pool_state(before, driver, device.pool))
        live_control.run_control(kube, self.world.driver_file, node, [*verb, device.name, *rest])

        def follows(now: PoolState) -> bool:
            return check([each for each in map(json.loads, now.devices) if each["name"] == device.name])

        self._wait(device.pool, follows, f"{device} to {verbs} in what is published")
        return PoolChange(device.pool, PoolWatch(self.world, (device.pool,), before, version))

    def _wait(self, pool: str, check: Callable[[PoolState], bool], expected: str) -> None:
        def followed() -> None:
            now = pool_state(self.world.slices(), self.world.driver_file.driver, pool)
            if now is None or not check(now):
                raise NotYet(f"pool {pool} has {', '.join(now.names)}" if now else f"pool {pool} is not whole")

        try:
            eventually(followed, expected, budgets.POOL, longest_pause=0.1)
        except WaitTimeout as late:
            raise failure(
                expected, late.last_seen, late.budget, queries.unless_node_is_away(self.world, _NOT_FOLLOWED)
            ) from late


@contextlib.contextmanager
def restored_hardware(world: World) -> Iterator[Hardware]:
    """The hardware for one test; as it was afterwards, however the test ends."""
    hardware = Hardware(world)
    try:
        yield hardware
    finally:
        hardware.restore()


def _node_of(slices: tuple[Object, ...], device: Device) -> str:
    for each in slices:
        if each["spec"]["pool"]["name"] == device.pool and each["spec"].get("nodeName"):
            return str(each["spec"]["nodeName"])
    raise DriverFailed(f"{device} is in no pool of a node", hint="hardware of the network cannot be changed by a test")


def _like(before: PoolState) -> Callable[[PoolState], bool]:
    return lambda now: now.devices == before.devices


def _is_gone(found: list[Object]) -> bool:
    return not found


def _is_there(found: list[Object]) -> bool:
    return bool(found)


def _has(text: str) -> Callable[[list[Object]], bool]:
    return lambda found: any({"string": text} in (each.get("attributes") or {}).values() for each in found)


def _has_taint(key: str) -> Callable[[list[Object]], bool]:
    return lambda found: any(key in _taints(each) for each in found)


def _has_no_taint(key: str) -> Callable[[list[Object]], bool]:
    return lambda found: bool(found) and not any(key in _taints(each) for each in found)


def _taints(device: Object) -> list[str]:
    return [each["key"] for each in device["taints"]]
