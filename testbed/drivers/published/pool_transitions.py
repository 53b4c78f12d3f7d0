"""The states that a scheduler could see while a pool changed: those in which it was complete, in order. Pure; used by `hardware`."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
    slices = {each["metadata"]["name"]: each for each in before}
    found = [pool_state(slices.values(), driver, pool)]
    for event in events:
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            slices.pop(name, None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            slices[name] = event["object"]
        now = pool_state(slices.values(), driver, pool)
        if now != found[-1]:
            found.append(now)
    return tuple(each for each in found if each)


def _as_json(device: Object) -> str:
    """Return a device as comparable JSON, without the times at which its taints were added."""
    taints = [{key: each[key] for key in each if key != "timeAdded"} for each in device.get("taints") or ()]
    return json.dumps({**device, "taints": taints}, sort_keys=True)
