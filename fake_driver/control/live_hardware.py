"""The hardware of a running driver: what was changed of it is checked whole, kept in the data folder, and then made true everywhere.

`console` asks for changes. They survive the process, because real hardware that is broken or gone is not mended by a driver's restart.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fake_driver.atomic_files import write_atomically
from fake_driver.control import overrides
from fake_driver.control.overrides import NONE, VERBS, Data, Override
from fake_driver.devices.health import Health, HealthStore
from fake_driver.devices.model import Device
from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.journal import Journal
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing import slices
from fake_driver.publishing.validation import find_problems
from fake_driver.strict_decoding import Section, raise_if_invalid

log = logging.getLogger(__name__)
_MOST_TOLD = 5


@dataclass(frozen=True)
class Dependents:
    """Where a change shows: in what can be prepared, in the health stream, and through `refresh` in the slices."""

    inventory: Inventory
    health_store: HealthStore
    initial_health: Callable[[Device], Health]
    refresh: Callable[[], None]
    journal: Journal


class LiveHardware:
    """The devices of the node's own pool. Thread-safe."""

    def __init__(self, driver: str, path: Path, dependents: Dependents) -> None:
        self._driver, self._path, self._dependents = driver, path, dependents
        self._pool, self.base = dependents.inventory.pool, dependents.inventory.devices
        self._lock = threading.Lock()
        self._overrides = self._read()
        self._show(self._devices(self._overrides))

    @property
    def device_names(self) -> tuple[str, ...]:
        """The names of all devices, also of those that are unplugged."""
        return tuple(device.name for device in self.base)

    def device(self, name: str) -> Device:
        """The device of that name, as the hardware file says it; an error names those that look like it."""
        for device in self.base:
            if device.name == name:
                return device
        raise ConfigurationError(f"pool {self._pool} has no device {name!r}; {suggestion(name, self.device_names)}")

    def change(self, verb: str, request: Section) -> bool:
        """Do as the verb says; False when it was so already. ConfigurationError when something is wrong, and then nothing has changed."""
        name = request.get("device", str) or ""
        raise_if_invalid(request)
        device = self.device(name)
        with self._lock:
            before = self._overrides.get(name, NONE)
            after = VERBS[verb](before, device, request)
            request.check_unknown_keys()
            raise_if_invalid(request)
            if after == before:
                return False
            self._become({**self._overrides, device.name: after})
        return True

    def restore_all(self) -> bool:
        """All is as the hardware file says."""
        with self._lock:
            was = bool(self._overrides)
            self._become({})
        return was

    def changes(self) -> Data:
        """What is altered, by device."""
        with self._lock:
            return {name: overrides.as_data(one) for name, one in self._overrides.items()}

    def _become(self, wanted: dict[str, Override]) -> None:
        """First what can fail, then what cannot."""
        wanted = dict(overrides.non_empty(wanted))
        devices = self._devices(wanted)
        wrong = self._problems(devices)
        if wrong:
            listed = "; ".join(wrong[:_MOST_TOLD])
            raise ConfigurationError(f"nothing was changed, for an API server would refuse it: {listed}")
        content = {name: overrides.as_data(one) for name, one in wanted.items()}
        write_atomically(self._path, json.dumps(content, indent=1).encode(), 0o600)
        self._overrides = wanted
        self._show(devices)
        self._dependents.refresh()

    def _problems(self, devices: tuple[Device, ...]) -> list[str]:
        """What an API server would refuse."""
        return find_problems(
            slices.for_node(self._driver, slices.Owner(self._pool, ""), devices, slices.Layout(self.base))
        )

    def _devices(self, wanted: dict[str, Override]) -> tuple[Device, ...]:
        return overrides.with_overrides(self.base, wanted, self._pool)

    def _show(self, devices: tuple[Device, ...]) -> None:
        health_store, first = self._dependents.health_store, self._dependents.initial_health
        gone = {device.name for device in self._dependents.inventory.devices}
        self._dependents.inventory.set_devices(devices)
        for device in devices:
            health_store.set((self._pool, device.name), overrides.health_of(device, self._overrides) or first(device))
        for name in gone - {device.name for device in devices}:
            health_store.remove((self._pool, name))

    def _read(self) -> dict[str, Override]:
        """What was kept. What fits the hardware file no more is left out; a file that says nothing sensible is set aside."""
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as broken:
            return self._set_aside(str(broken))
        if not isinstance(content, dict):
            return self._set_aside("it holds no mapping")
        wrong: list[str] = []
        gone = content.keys() - set(self.device_names)
        if gone:
            log.warning("the hardware has no %s any more, which had been changed", ", ".join(sorted(gone)))
        found = {name: overrides.parse(Section(name, one, wrong)) for name, one in content.items() if name not in gone}
        if wrong or self._problems(self._devices(found)):
            return self._set_aside("; ".join(wrong[:_MOST_TOLD]) or "an API server would refuse it")
        return found

    def _set_aside(self, why: str) -> dict[str, Override]:
        aside = self._path.with_suffix(".damaged")
        self._path.replace(aside)
        self._dependents.journal.record("changes-set-aside", file=str(aside), why=why)
        log.error("what was changed of the hardware cannot be read, and is kept in %s: %s", aside, why)
        return {}
