"""Drivers that put something else into containers than the devices, or take it away."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_driver.devices.model import Device
from fake_driver.preparing import cdi
from fake_driver.preparing.callers import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.driver import Driver, Prepared
from fake_driver.preparing.metadata import MetadataFolder, Object, stream
from fake_driver.roles.node_driver import Parts

_UNTIL_CONTAINERS_RUN = 1.5  # seconds after the answer


def share_one_device(right: Parts) -> Parts:
    """Whatever was allocated, containers are told that they have the node's first device."""
    first = right.inventory.devices[0]
    return replace(right, environment=lambda _device, use, home: cdi.environment(first, use, home))


def no_env(right: Parts) -> Parts:
    """Containers start, but nothing in them names a device."""
    # A CDI device without any edit would be refused by the runtime, and then nothing would start.
    return replace(right, environment=lambda _device, _use, _home: {"FAKE_DRIVER_FAULT": "no-env"})


def no_env_for_administrators(right: Parts) -> Parts:
    """A container with admin access starts, but nothing in it names a device."""

    def environment(device: Device, use: AllocatedDevice, home: str) -> Mapping[str, str]:
        return {"FAKE_DRIVER_FAULT": "no-env"} if use.admin_access else right.environment(device, use, home)

    return replace(right, environment=environment)


class CdiFileIsLost(Driver):
    """The CDI file goes when the containers run, so none of them can be started again."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[Prepared, ...]:
        """Answer rightly, and remove the file a little later."""
        answer = super().prepare(ref, caller)
        timer = threading.Timer(_UNTIL_CONTAINERS_RUN, self._cdi.remove, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer


class ReuseCdiNames(Driver):
    """Every claim's first device has the CDI id that the node's first claim had."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[Prepared, ...]:
        """Give the ids of the first."""
        answer = super().prepare(ref, caller)
        self._first = getattr(self, "_first", answer)
        return tuple(replace(each, cdi_ids=one.cdi_ids) for each, one in zip(answer, self._first, strict=False))


class CdiNamesOfDevices(Driver):
    """CDI ids are named after devices, in a file for each claim: the next claim's say something else under the same id."""

    def _addition(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        return replace(super()._addition(uid, device, mount), name=device.device)


class WrongCdiNames(Driver):
    """The answer names CDI devices that no file on the node defines."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[Prepared, ...]:
        """Misspell them."""
        return tuple(
            replace(each, cdi_ids=tuple(f"{one}x" for one in each.cdi_ids)) for each in super().prepare(ref, caller)
        )


class OneCdiFileForAll(Driver):
    """There is room for the CDI file of one claim: the next one's takes its place."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[Prepared, ...]:
        """Leave only the file of this claim."""
        answer = super().prepare(ref, caller)
        for other in self._cdi.claims():
            if other != ref.uid:
                self._cdi.remove(other)
        return answer


def mounts_missing(right: Parts) -> Parts:
    """Files that containers should have are not mounted into them."""
    return replace(right, driver=_NoMounts)


def metadata_of_another_namespace(right: Parts) -> Parts:
    """Device metadata says that its claim is in a namespace where it is not."""
    return replace(right, metadata=_Elsewhere)


def metadata_oldest_first(right: Parts) -> Parts:
    """Readers of device metadata get the oldest version that they know."""
    return replace(right, metadata=_OldestFirst)


def mounts_hide_those_of_others(right: Parts) -> Parts:
    """The folder of a request is mounted for the one file in it, so that files of other drivers have no place there."""
    return replace(right, driver=_MountsFolders)


class _Elsewhere(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return super()._content(replace(claim, ref=replace(claim.ref, namespace="elsewhere")), request, devices)


class _OldestFirst(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return stream(claim, request, devices, self._versions[::-1])


class _NoMounts(Driver):
    def _addition(self, *of: Any) -> CdiDevice:
        right = super()._addition(*of)
        return replace(right, edits={key: edit for key, edit in right.edits.items() if key != "mounts"})


class _MountsFolders(Driver):
    def _addition(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        if mount:
            file, shown = Path(mount["hostPath"]), Path(mount["containerPath"])
            folder = file.with_suffix("")
            folder.mkdir(exist_ok=True)
            (folder / shown.name).write_bytes(file.read_bytes())
            mount = {**mount, "hostPath": str(folder), "containerPath": str(shown.parent)}
        return super()._addition(uid, device, mount)


ALL = (
    share_one_device,
    no_env,
    no_env_for_administrators,
    CdiFileIsLost,
    ReuseCdiNames,
    CdiNamesOfDevices,
    WrongCdiNames,
    OneCdiFileForAll,
    mounts_missing,
    metadata_of_another_namespace,
    metadata_oldest_first,
    mounts_hide_those_of_others,
)
