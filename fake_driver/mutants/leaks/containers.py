"""Drivers that add devices to containers without a claim: their variables, device nodes, and a metadata file that names them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from fake_driver.atomic_files import write_atomically
from fake_driver.devices.model import Device
from fake_driver.mutants.leaks import nri_plugin
from fake_driver.mutants.leaks.nri_plugin import Additions, NewContainer, RefusedContainerError
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.device_metadata import VERSIONS, container_path, device_entry, file_content
from fake_driver.preparing.driver import Driver

_METADATA = "/dra-device-attributes/"
_CLAIM = "CLAIM_"  # beginning of a variable; the rest of its name is the UID of a claim


class _Leak(Driver, ABC):
    """A driver that is correct for claims, and adds the node's first device to some containers without a claim."""

    def recover(self) -> None:
        """Recover, and then register with the container runtime."""
        super().recover()
        nri_plugin.start(f"leak-{self.name}", self.additions)

    def additions(self, container: NewContainer) -> Additions | None:
        """Return what a new container gets, or None."""
        if _has_claim(container) or not self._leaks_to(container):
            return None
        device, pool = self._collaborators.inventory.devices[0], self._collaborators.inventory.pool
        allocated = AllocatedDevice("device", pool, device.name)
        claim = PreparedClaim(ClaimRef("leaked", "default", "leaked"), (allocated,))
        path = self._write_metadata(claim, device_entry(device, allocated, self.name, {}))
        variables = self._collaborators.environment(device, allocated, pool)
        return Additions(variables, {container_path(claim, "device", self.name): path}, _character_devices(device))

    def _write_metadata(self, claim: PreparedClaim, entry: dict[str, object]) -> Path:
        path = self._leaked_files / "leaked.json"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        write_atomically(path, file_content(claim, "device", [entry], VERSIONS), 0o644, is_durable=False)
        return path

    @property
    def _leaked_files(self) -> Path:
        return self._metadata._folder.parent / "leaked"

    @abstractmethod
    def _leaks_to(self, container: NewContainer, /) -> bool:
        """Return True if a container without a claim gets the device."""


def _has_claim(container: NewContainer) -> bool:
    """Return True if a container has a claim, which adds a mount of metadata."""
    return any(_METADATA in each for each in container.mounts)


def _character_devices(device: Device) -> dict[str, tuple[int, int]]:
    """Return the numbers of the device nodes that CDI adds for a device. The driver's container has the same /dev/null as the node."""
    nodes = device.container_edits.get("deviceNodes", ())
    numbers = {each["path"]: Path(each.get("hostPath", each["path"])).stat().st_rdev for each in nodes}
    return {path: (os.major(number), os.minor(number)) for path, number in numbers.items()}


class LeakToEveryContainer(_Leak):
    """Every container on the node gets the first device, also those of pods without a claim."""

    def _leaks_to(self, _container: NewContainer, /) -> bool:
        return True


class LeakWhileClaimed(_Leak):
    """While a claim is prepared on the node, containers without a claim get the first device."""

    def _leaks_to(self, _container: NewContainer, /) -> bool:
        return self.prepared > 0


class LeakToRestartedContainers(_Leak):
    """A restarted container without a claim gets the first device."""

    _created: ClassVar[list[tuple[str, str]]] = []

    def _leaks_to(self, container: NewContainer, /) -> bool:
        before = self._created.count((container.sandbox, container.name))
        self._created.append((container.sandbox, container.name))
        return before > 0


class LeakAfterRestartsOfOwners(_Leak):
    """After a container with a claim was restarted, containers without a claim get the first device."""

    _owners: ClassVar[list[tuple[str, str]]] = []

    def additions(self, container: NewContainer) -> Additions | None:
        """Return what a new container gets, or None."""
        if _has_claim(container):
            self._owners.append((container.sandbox, container.name))
        return super().additions(container)

    def _leaks_to(self, _container: NewContainer, /) -> bool:
        return len(self._owners) > len(set(self._owners))


class LeakToForgedEnvironment(_Leak):
    """A container that sets a device's variables itself gets the first device."""

    def _leaks_to(self, container: NewContainer, /) -> bool:
        kind = self._collaborators.inventory.devices[0].kind.upper()
        return any(each.startswith(f"{kind}_DEVICE_") for each in container.environment)


class LeakToForgedClaims(_Leak):
    """A container that sets the UID of an unknown claim gets the first device. One that sets the UID of a prepared claim is refused."""

    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        found = super()._cdi_device(uid, device, mount)
        return replace(found, env={**found.env, f"{_CLAIM}{uid}": device.device})

    def _leaks_to(self, container: NewContainer, /) -> bool:
        names = (each.partition("=")[0] for each in container.environment)
        claims = {each.removeprefix(_CLAIM) for each in names if each.startswith(_CLAIM)}
        with self._checkpoint.locked() as checkpoint:
            prepared = claims.intersection(checkpoint.claims)
        if prepared:
            raise RefusedContainerError(f"claim {', '.join(prepared)} belongs to another container")
        return bool(claims)


class LeakWhenAllAreClaimed(_Leak):
    """When all ordinary devices of the node are prepared, containers without a claim get the first device."""

    def _leaks_to(self, _container: NewContainer, /) -> bool:
        with self._checkpoint.locked() as checkpoint:
            prepared = {device.device for claim in checkpoint.claims.values() for device in claim.devices}
        return all(
            each.name in prepared for each in self._collaborators.inventory.devices if "purpose" not in each.attributes
        )


ALL = (
    LeakToEveryContainer,
    LeakWhileClaimed,
    LeakToRestartedContainers,
    LeakAfterRestartsOfOwners,
    LeakToForgedEnvironment,
    LeakToForgedClaims,
    LeakWhenAllAreClaimed,
)
