"""The states that a scheduler could see while a pool changed: those in which it was complete, in order. Pure; used by `hardware`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import pools
from testbed.kube.client import Object


@dataclass(frozen=True, repr=False)
class PoolState:
    """A complete pool at one moment: its generation and its devices as JSON, sorted."""

    generation: int
    devices: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the pool's devices."""
        return tuple(json.loads(device)["name"] for device in self.devices)

    def __repr__(self) -> str:
        return f"generation {self.generation}: {', '.join(self.names)}"


def pool_state(slices: Iterable[Object], driver: str, pool: str) -> PoolState | None:
    """Return the state of a pool in these slices, or None if the pool is not complete."""
    for found in pools(slices, driver):
        if found.name == pool and found.complete:
            devices = (device for each in found.slices for device in each["spec"].get("devices") or ())
            return PoolState(found.generation, tuple(sorted(map(_as_json, devices))))
    return None


def pool_states(before: Iterable[Object], events: Iterable[Object], driver: str, pool: str) -> tuple[PoolState, ...]:
    """Return the complete states from before the events to the last one, without repetitions."""
    found: list[PoolState | None] = []
    for slices in slices_over_time(before, events):
        now = pool_state(slices, driver, pool)
        if not found or now != found[-1]:
            found.append(now)
    return tuple(each for each in found if each)


def lost_devices(before: Iterable[Object], events: Iterable[Object], driver: str, pool: str) -> frozenset[str]:
    """Return the devices from before the events that a later complete state lacks. Without slices, a pool lacks all devices."""
    first, *later = [_visible(slices, driver, pool) for slices in slices_over_time(before, events)]
    return frozenset(name for now in later for name in (first or frozenset()) if now is not None and name not in now)


def slices_over_time(before: Iterable[Object], events: Iterable[Object]) -> Iterator[tuple[Object, ...]]:
    """Yield the slices before the events, and after each of them."""
    slices = {each["metadata"]["name"]: each for each in before}
    yield tuple(slices.values())
    for event in events:
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            slices.pop(name, None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            slices[name] = event["object"]
        yield tuple(slices.values())


def versions(slices: Iterable[Object]) -> frozenset[tuple[str, str]]:
    """Return UID and resource version of each slice: equal if and only if the slices are."""
    return frozenset(
        (str(each["metadata"].get("uid")), str(each["metadata"].get("resourceVersion"))) for each in slices
    )


def _visible(slices: Iterable[Object], driver: str, pool: str) -> frozenset[str] | None:
    """Return the devices that a scheduler sees in a pool; None while the pool is incomplete."""
    found = tuple(each for each in slices if each["spec"]["driver"] == driver and each["spec"]["pool"]["name"] == pool)
    state = pool_state(found, driver, pool)
    return frozenset(state.names) if state else None if found else frozenset()


def _as_json(device: Object) -> str:
    """Return a device as comparable JSON, without the times at which its taints were added."""
    taints = [{key: each[key] for key in each if key != "timeAdded"} for each in device.get("taints") or ()]
    return json.dumps({**device, "taints": taints}, sort_keys=True)
