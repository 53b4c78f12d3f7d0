"""Drivers whose CDI files or CDI IDs give containers the wrong devices, or none."""

from __future__ import annotations

import atexit
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fake_driver.atomic_files import write_atomically
from fake_driver.devices.model import Device
from fake_driver.preparing import cdi
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.roles.node_driver import Parts

_SECONDS_UNTIL_CONTAINERS_RUN = 1.5  # after the answer


def share_one_device(parts: Parts) -> Parts:
    """Containers get the variables of the node's first device, whichever device was allocated."""
    first = parts.inventory.devices[0]
    return replace(
        parts, environment=lambda _device, allocated, node_pool: cdi.environment(first, allocated, node_pool)
    )


def no_env(parts: Parts) -> Parts:
    """Containers get no variables of their devices."""
    # The runtime refuses a CDI device without edits, so the container would not start.
    return replace(parts, environment=lambda _device, _allocated, _node_pool: {"FAKE_DRIVER_FAULT": "no-env"})


def no_env_for_administrators(parts: Parts) -> Parts:
    """Containers with admin access get no variables of their devices."""

    def environment(device: Device, allocated: AllocatedDevice, node_pool: str) -> Mapping[str, str]:
        if allocated.admin_access:
            return {"FAKE_DRIVER_FAULT": "no-env"}
        return parts.environment(device, allocated, node_pool)

    return replace(parts, environment=environment)


class EnvOfAnotherDevice(Driver):
    """Containers get the variables, device nodes and mounts of the device that comes before the allocated one in its pool."""

    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        found, devices = super()._cdi_device(uid, device, mount), self._collaborators.inventory.devices
        names = [each.name for each in devices]
        if device.pool != self._collaborators.inventory.pool:
            return found
        other = replace(device, device=names[names.index(device.device) - 1])
        return replace(super()._cdi_device(uid, other, mount), name=found.name)


def no_env_for_passthrough(parts: Parts) -> Parts:
    """Containers get no variables of devices with the attribute mode: passthrough."""

    def environment(device: Device, allocated: AllocatedDevice, node_pool: str) -> Mapping[str, str]:
        if device.attributes.get("mode") == "passthrough":
            return {"FAKE_DRIVER_FAULT": "no-env"}
        return parts.environment(device, allocated, node_pool)

    return replace(parts, environment=environment)


class CdiFileIsLost(Driver):
    """The CDI file is removed when the containers run, so they cannot be restarted."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim, and remove its CDI file later."""
        answer = super().prepare(ref, caller)
        timer = threading.Timer(_SECONDS_UNTIL_CONTAINERS_RUN, self._cdi.remove, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer


class CdiFilesEndWithTheDriver(Driver):
    """The driver removes its CDI files when it stops, so a container that starts later finds none."""

    def recover(self) -> None:
        """Recover, and remove the CDI files at the end of this process."""
        super().recover()
        atexit.register(self._cdi.remove_all)


class CdiFileIsReplaced(Driver):
    """When the containers run, the CDI file is replaced by one without the variables of the devices, so restarted containers lack them."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim, and replace its CDI file later."""
        answer = super().prepare(ref, caller)
        timer = threading.Timer(_SECONDS_UNTIL_CONTAINERS_RUN, self._replace, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer

    def _replace(self, uid: str) -> None:
        path = self._cdi.path(uid)
        if path.exists():
            spec = json.loads(path.read_bytes())
            for device in spec["devices"]:
                device["containerEdits"] = {"env": ["FAKE_DRIVER_FAULT=cdi-file-is-replaced"]}
            write_atomically(path, json.dumps(spec).encode(), 0o644)


class CdiFileIsCompletedLate(Driver):
    """A variable with the UID of the claim is added to the CDI file only when the containers run."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Prepare the claim, and complete its CDI file later."""
        answer = super().prepare(ref, caller)
        timer = threading.Timer(_SECONDS_UNTIL_CONTAINERS_RUN, self._complete, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer

    def _complete(self, uid: str) -> None:
        path = self._cdi.path(uid)
        if path.exists():
            spec = json.loads(path.read_bytes())
            for device in spec["devices"]:
                device["containerEdits"]["env"].append(f"FAKE_DRIVER_CLAIM={uid}")
            write_atomically(path, json.dumps(spec).encode(), 0o644)


class ReuseCdiNames(Driver):
    """Every claim gets the CDI IDs of the first claim on the node."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Replace the CDI IDs by those of the first claim."""
        answer = super().prepare(ref, caller)
        self._first = getattr(self, "_first", answer)
        return tuple(replace(each, cdi_ids=one.cdi_ids) for each, one in zip(answer, self._first, strict=False))


class CdiNamesOfDevices(Driver):
    """CDI IDs contain the name of the device but not of the claim, so the files of two claims define the same ID differently."""

    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        return replace(super()._cdi_device(uid, device, mount), name=device.device)


class CdiContentOfEachClaim(CdiNamesOfDevices):
    """CDI IDs contain the name of the device but not of the claim, and define a variable with the UID of the claim."""

    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        found = super()._cdi_device(uid, device, mount)
        return replace(found, env={**found.env, "FAKE_DRIVER_CLAIM": uid})


class OneGrowingCdiFile(Driver):
    """One CDI file defines one CDI ID for all claims. Each claim adds variables to it, and none are removed."""

    _growing = threading.Lock()

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Move the variables of the claim from its own file to the common one."""
        answer = super().prepare(ref, caller)
        with self._growing:
            spec = json.loads(self._cdi.path(ref.uid).read_bytes())
            self._cdi.remove(ref.uid)
            self._grow(spec, ref.uid)
        return tuple(replace(each, cdi_ids=(self._cdi.qualified_name("all"),)) for each in answer)

    def _grow(self, spec: dict[str, Any], uid: str) -> None:
        path = self._cdi.folder / f"{self.name}-all.json"
        before = json.loads(path.read_bytes())["devices"][0]["containerEdits"]["env"] if path.exists() else []
        new = [each for device in spec["devices"] for each in device["containerEdits"]["env"]]
        env = [*dict.fromkeys([*before, *new, f"FAKE_DRIVER_CLAIM_{uid.replace('-', '_')}=prepared"])]
        spec["devices"] = [{"name": "all", "containerEdits": {"env": env}}]
        write_atomically(path, json.dumps(spec).encode(), 0o644)


class WrongCdiNames(Driver):
    """The answer has CDI IDs that no file on the node defines."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Misspell the CDI IDs."""
        return tuple(
            replace(each, cdi_ids=tuple(f"{one}x" for one in each.cdi_ids)) for each in super().prepare(ref, caller)
        )


class OneCdiFileForAll(Driver):
    """Only the CDI file of the last claim is kept; those of earlier claims are removed."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Remove the CDI files of other claims."""
        answer = super().prepare(ref, caller)
        for other in self._cdi.claims():
            if other != ref.uid:
                self._cdi.remove(other)
        return answer


ALL = (
    share_one_device,
    EnvOfAnotherDevice,
    no_env,
    no_env_for_administrators,
    no_env_for_passthrough,
    CdiFileIsLost,
    CdiFilesEndWithTheDriver,
    CdiFileIsReplaced,
    CdiFileIsCompletedLate,
    ReuseCdiNames,
    CdiNamesOfDevices,
    CdiContentOfEachClaim,
    OneGrowingCdiFile,
    WrongCdiNames,
    OneCdiFileForAll,
)
