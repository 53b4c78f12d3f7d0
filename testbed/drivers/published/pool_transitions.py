"""What a scheduler could see of a pool while it changed: the states in which it was whole, in their order. Pure; for `hardware`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.drivers.published.slices import pools
from testbed.kube.client import Object


@dataclass(frozen=True, repr=False)
class PoolState:
    """A whole pool at one moment: its generation, and its devices with all that is said of them, sorted."""

    generation: int
    devices: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its devices."""
        return tuple(json.loads(device)["name"] for device in self.devices)

    def __repr__(self) -> str:
        return f"generation {self.generation}: {', '.join(self.names)}"


def pool_state(slices: Iterable[Object], driver: str, pool: str) -> PoolState | None:
    """The pool as it is in these slices; None when it is not whole."""
    for found in pools(slices, driver):
        if found.name == pool and found.complete:
            devices = (device for each in found.slices for device in each["spec"].get("devices") or ())
            return PoolState(found.generation, tuple(sorted(map(_plain, devices))))
    return None


def pool_states(before: Iterable[Object], events: Iterable[Object], driver: str, pool: str) -> tuple[PoolState, ...]:
    """Every whole state, from the one before the events to the last one, each once in a row."""
    there = {each["metadata"]["name"]: each for each in before}
    found = [pool_state(there.values(), driver, pool)]
    for event in events:
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            there.pop(name, None)
        elif event["type"] in ("ADDED", "MODIFIED"):
            there[name] = event["object"]
        now = pool_state(there.values(), driver, pool)
        if now != found[-1]:
            found.append(now)
    return tuple(each for each in found if each)


def _plain(device: Object) -> str:
    """A device as text that can be compared; when a taint was added does not matter."""
    taints = [{key: each[key] for key in each if key != "timeAdded"} for each in device.get("taints") or ()]
    return json.dumps({**device, "taints": taints}, sort_keys=True)
