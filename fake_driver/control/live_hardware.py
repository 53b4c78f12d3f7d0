"""Changes the hardware of a running driver: validates a change, saves it in the data folder, and applies it to all that depend on it.

Changes survive a restart, because restarting a driver does not repair real hardware either. The request handler calls it.
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
_MAX_LISTED = 5


@dataclass(frozen=True)
class Dependents:
    """What depends on the hardware: the inventory, the health stream and, through `refresh`, the slices."""

    inventory: Inventory
    health_store: HealthStore
    initial_health: Callable[[Device], Health]
    refresh: Callable[[], None]
    journal: Journal


class LiveHardware:
    """The devices of the node's pool with their run-time changes. Thread-safe."""

    def __init__(self, driver: str, path: Path, dependents: Dependents) -> None:
        self._driver, self._path, self._dependents = driver, path, dependents
        self._pool, self.base = dependents.inventory.pool, dependents.inventory.devices
        self._lock = threading.Lock()
        self._overrides = self._read()
        self._apply(self._devices(self._overrides))

    @property
    def device_names(self) -> tuple[str, ...]:
        """The names of all devices, including unplugged ones."""
        return tuple(device.name for device in self.base)

    def device(self, name: str) -> Device:
        """Return a device as in the hardware file; raise ConfigurationError with similar names if there is none."""
        for device in self.base:
            if device.name == name:
                return device
        raise ConfigurationError(f"pool {self._pool} has no device {name!r}; {suggestion(name, self.device_names)}")

    def change(self, verb: str, request: Section) -> bool:
        """Change a device as the verb says. Return False if that changes nothing; raise ConfigurationError if the request is invalid."""
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
            self._save_and_apply({**self._overrides, device.name: after})
        return True

    def restore_all(self) -> bool:
        """Undo all changes; return False if there were none."""
        with self._lock:
            had_overrides = bool(self._overrides)
            self._save_and_apply({})
        return had_overrides

    def changes(self) -> Data:
        """Return the changes by device."""
        with self._lock:
            return {name: overrides.as_data(one) for name, one in self._overrides.items()}

    def _save_and_apply(self, wanted: dict[str, Override]) -> None:
        """Do first what can fail: validate and save, then apply."""
        wanted = dict(overrides.non_empty(wanted))
        devices = self._devices(wanted)
        problems = self._problems(devices)
        if problems:
            listed = "; ".join(problems[:_MAX_LISTED])
            raise ConfigurationError(f"nothing was changed: the API server would refuse the slices: {listed}")
        content = {name: overrides.as_data(one) for name, one in wanted.items()}
        write_atomically(self._path, json.dumps(content, indent=1).encode(), 0o600)
        self._overrides = wanted
        self._apply(devices)
        self._dependents.refresh()

    def _problems(self, devices: tuple[Device, ...]) -> list[str]:
        """Return what an API server would refuse in the slices of these devices."""
        return find_problems(
            slices.for_node(self._driver, slices.Owner(self._pool, ""), devices, slices.Layout(self.base))
        )

    def _devices(self, wanted: dict[str, Override]) -> tuple[Device, ...]:
        return overrides.with_overrides(self.base, wanted, self._pool)

    def _apply(self, devices: tuple[Device, ...]) -> None:
        health_store, initial_health = self._dependents.health_store, self._dependents.initial_health
        before = {device.name for device in self._dependents.inventory.devices}
        self._dependents.inventory.set_devices(devices)
        for device in devices:
            health_store.set(
                (self._pool, device.name), overrides.health_of(device, self._overrides) or initial_health(device)
            )
        for name in before - {device.name for device in devices}:
            health_store.remove((self._pool, name))

    def _read(self) -> dict[str, Override]:
        """Read the saved changes, without those of devices that the hardware file no longer has. Set an invalid file aside."""
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as invalid:
            return self._set_aside(str(invalid))
        if not isinstance(content, dict):
            return self._set_aside("it does not contain a mapping")
        problems: list[str] = []
        gone = content.keys() - set(self.device_names)
        if gone:
            log.warning("ignoring changes of devices that the hardware file no longer has: %s", ", ".join(sorted(gone)))
        found = {
            name: overrides.parse(Section(name, one, problems)) for name, one in content.items() if name not in gone
        }
        if problems or self._problems(self._devices(found)):
            return self._set_aside("; ".join(problems[:_MAX_LISTED]) or "the API server would refuse the slices")
        return found

    def _set_aside(self, why: str) -> dict[str, Override]:
        aside = self._path.with_suffix(".damaged")
        self._path.replace(aside)
        self._dependents.journal.record("changes-set-aside", file=str(aside), why=why)
        log.error(
            "the saved changes of the hardware are invalid; they were moved to %s and are ignored: %s", aside, why
        )
        return {}
