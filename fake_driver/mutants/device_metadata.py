"""Drivers whose device metadata is wrong or missing in containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.claims import AllocatedDevice, PreparedClaim
from fake_driver.preparing.device_metadata import MetadataFolder, Object, file_content
from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts


def mounts_missing(parts: Parts) -> Parts:
    """The mounts of a device are left out of the CDI file."""
    return replace(parts, driver=_WithoutMounts)


def metadata_of_another_namespace(parts: Parts) -> Parts:
    """Device metadata has the wrong namespace of the claim."""
    return replace(parts, metadata_folder=_WrongNamespace)


def metadata_oldest_first(parts: Parts) -> Parts:
    """Device metadata has its versions in the wrong order, so readers use the oldest version that they know."""
    return replace(parts, metadata_folder=_OldestFirst)


def metadata_without_attributes(parts: Parts) -> Parts:
    """Device metadata has no attributes of the devices."""
    return replace(parts, metadata_folder=_WithoutAttributes)


def mounts_hide_those_of_others(parts: Parts) -> Parts:
    """The folder of a request is mounted instead of the file, so it hides the files of other drivers."""
    return replace(parts, driver=_MountFolders)


class _WrongNamespace(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return super()._content(replace(claim, ref=replace(claim.ref, namespace="elsewhere")), request, devices)


class _OldestFirst(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return file_content(claim, request, devices, self._versions[::-1])


class _WithoutAttributes(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        bare = [{key: value for key, value in each.items() if key != "attributes"} for each in devices]
        return super()._content(claim, request, bare)


class _WithoutMounts(Driver):
    def _cdi_device(self, *arguments: Any) -> CdiDevice:
        device = super()._cdi_device(*arguments)
        return replace(device, edits={key: edit for key, edit in device.edits.items() if key != "mounts"})


class _MountFolders(Driver):
    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        if mount:
            file, mounted = Path(mount["hostPath"]), Path(mount["containerPath"])
            folder = file.with_suffix("")
            folder.mkdir(exist_ok=True)
            (folder / mounted.name).write_bytes(file.read_bytes())
            mount = {**mount, "hostPath": str(folder), "containerPath": str(mounted.parent)}
        return super()._cdi_device(uid, device, mount)


ALL = (
    mounts_missing,
    metadata_of_another_namespace,
    metadata_oldest_first,
    metadata_without_attributes,
    mounts_hide_those_of_others,
)
