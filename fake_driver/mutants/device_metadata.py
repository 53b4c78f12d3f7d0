"""Drivers whose device metadata files are wrong, or missing in containers."""

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
    """Files that containers should have are not mounted into them."""
    return replace(parts, driver=_NoMounts)


def metadata_of_another_namespace(parts: Parts) -> Parts:
    """Device metadata says that its claim is in a namespace where it is not."""
    return replace(parts, metadata_folder=_Elsewhere)


def metadata_oldest_first(parts: Parts) -> Parts:
    """Readers of device metadata get the oldest version that they know."""
    return replace(parts, metadata_folder=_OldestFirst)


def mounts_hide_those_of_others(parts: Parts) -> Parts:
    """The folder of a request is mounted for the one file in it, so that files of other drivers have no place there."""
    return replace(parts, driver=_MountsFolders)


class _Elsewhere(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return super()._content(replace(claim, ref=replace(claim.ref, namespace="elsewhere")), request, devices)


class _OldestFirst(MetadataFolder):
    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return file_content(claim, request, devices, self._versions[::-1])


class _NoMounts(Driver):
    def _cdi_device(self, *of: Any) -> CdiDevice:
        parts = super()._cdi_device(*of)
        return replace(parts, edits={key: edit for key, edit in parts.edits.items() if key != "mounts"})


class _MountsFolders(Driver):
    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        if mount:
            file, shown = Path(mount["hostPath"]), Path(mount["containerPath"])
            folder = file.with_suffix("")
            folder.mkdir(exist_ok=True)
            (folder / shown.name).write_bytes(file.read_bytes())
            mount = {**mount, "hostPath": str(folder), "containerPath": str(shown.parent)}
        return super()._cdi_device(uid, device, mount)


ALL = (
    mounts_missing,
    metadata_of_another_namespace,
    metadata_oldest_first,
    mounts_hide_those_of_others,
)
