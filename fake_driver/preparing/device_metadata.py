"""Device metadata files, which tell programs in containers about their devices.

The driver writes the files when it prepares a claim, and CDI mounts them. A program can work out the path in its container:
/var/run/kubernetes.io/dra-device-attributes/resourceclaims/<claim>/<request>/<driver>-metadata.json, or below
resourceclaimtemplates/<the pod's name of the claim> for a claim made from a template.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fake_driver.atomic_files import write_atomically
from fake_driver.devices.model import Device
from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.name_patterns import UID, matches
from fake_driver.preparing.claims import AllocatedDevice, PreparedClaim
from fake_driver.preparing.device_status import StatusData
from fake_driver.publishing.slices import attribute_value

Object = dict[str, Any]
GROUP = "metadata.resource.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")  # with the same fields
_IN_CONTAINERS = "/var/run/kubernetes.io/dra-device-attributes"


def container_path(claim: PreparedClaim, request: str, driver: str) -> str:
    """Return the path in containers of the metadata file of a request."""
    owner = ("resourceclaimtemplates", claim.pod_claim) if claim.pod_claim else ("resourceclaims", claim.ref.name)
    return "/".join((_IN_CONTAINERS, *owner, request, f"{driver}-metadata.json"))


def device_entry(device: Device, allocated: AllocatedDevice, driver: str, status_data: Mapping[str, Any]) -> Object:
    """Return the entry of one device: its attributes in the form of a ResourceSlice, and its network data."""
    attributes = {name: attribute_value(device.attributes[name]) for name in sorted(device.attributes)}
    network = {"networkData": status_data["networkData"]} if status_data.get("networkData") else {}
    return {"driver": driver, "pool": allocated.pool, "name": device.name, "attributes": attributes, **network}


def file_content(claim: PreparedClaim, request: str, devices: Sequence[Object], versions: Sequence[str]) -> bytes:
    """Return the content of a file: the same object in each version. Readers take the first version that they know."""
    ref = claim.ref
    content = {
        "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid, "generation": 1},
        **({"podClaimName": claim.pod_claim} if claim.pod_claim else {}),
        "requests": [{"name": request, "devices": list(devices)}],
    }
    objects = ({"kind": "DeviceMetadata", "apiVersion": f"{GROUP}/{version}", **content} for version in versions)
    return "".join(f"{json.dumps(each, indent=1)}\n" for each in objects).encode()


class MetadataFolder:
    """The metadata files of one driver on this node, in one folder for each claim. Without versions, no files are written."""

    def __init__(self, folder: Path, driver: str, versions: Sequence[str], status_data: StatusData) -> None:
        unknown = [version for version in versions if version not in VERSIONS]
        if unknown:
            raise ConfigurationError(
                f"unknown version {unknown[0]!r} of device metadata; {suggestion(unknown[0], VERSIONS)}"
            )
        self._folder, self._driver, self._versions, self._status_data = folder, driver, versions, status_data

    def write(self, claim: PreparedClaim, find: Callable[[str, str], Device]) -> dict[str, Object]:
        """Write the claim's files and return a CDI mount for each request. `find` returns a device by pool and name."""
        if not self._versions:
            return {}
        requests: dict[str, list[AllocatedDevice]] = {}
        for device in claim.devices:
            requests.setdefault(device.base_request, []).append(device)
        return {request: self._write(claim, request, devices, find) for request, devices in requests.items()}

    def remove(self, uid: str) -> None:
        """Remove the files of a claim."""
        shutil.rmtree(self._folder / uid, ignore_errors=True)

    def sweep(self, prepared: Collection[str]) -> None:
        """Remove the files of claims other than these UIDs."""
        for path in self._folder.glob("*"):
            if matches(UID, path.name) and path.name not in prepared:
                self.remove(path.name)

    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return file_content(claim, request, devices, self._versions)

    def _write(
        self,
        claim: PreparedClaim,
        request: str,
        allocated: Sequence[AllocatedDevice],
        find: Callable[[str, str], Device],
    ) -> Object:
        found = [(find(each.pool, each.device), each) for each in allocated]
        entries = [device_entry(device, each, self._driver, self._status_data(device, each)) for device, each in found]
        content = self._content(claim, allocated[0].request, entries)
        path = self._folder / claim.ref.uid / f"{request}.json"
        # Containers mount the file by inode, so an unchanged file must not be replaced.
        if not (path.is_file() and path.read_bytes() == content):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            # The file need not survive a power cut: the kubelet prepares the claim again after a reboot.
            write_atomically(path, content, 0o644, is_durable=False)
        mounted = container_path(claim, request, self._driver)
        return {"hostPath": str(path), "containerPath": mounted, "options": ["ro", "bind"]}
