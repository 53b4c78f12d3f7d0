"""Device metadata files: what a program in a container wants to know of its devices, at a path that it can work out by itself.

/var/run/kubernetes.io/dra-device-attributes/resourceclaims/<claim>/<request>/<driver>-metadata.json, or below resourceclaimtemplates/ with
the pod's own name of the claim where a template made it. The driver writes the files when it prepares a claim; CDI mounts them.
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
from fake_driver.publishing.slices import attribute_value

Object = dict[str, Any]
# What is known of a device, as it stands in a claim's status.
Known = Callable[[Device, AllocatedDevice], Mapping[str, Any]]
GROUP = "metadata.resource.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")  # which say the same
_IN_CONTAINERS = "/var/run/kubernetes.io/dra-device-attributes"


def container_path(claim: PreparedClaim, request: str, driver: str) -> str:
    """Where containers find the file of a request."""
    whose = ("resourceclaimtemplates", claim.pod_claim) if claim.pod_claim else ("resourceclaims", claim.ref.name)
    return "/".join((_IN_CONTAINERS, *whose, request, f"{driver}-metadata.json"))


def described(device: Device, use: AllocatedDevice, driver: str, known: Mapping[str, Any]) -> Object:
    """One device: its attributes in the words of a ResourceSlice, and its network."""
    attributes = {name: attribute_value(device.attributes[name]) for name in sorted(device.attributes)}
    network = {"networkData": known["networkData"]} if known.get("networkData") else {}
    return {"driver": driver, "pool": use.pool, "name": device.name, "attributes": attributes, **network}


def stream(claim: PreparedClaim, request: str, devices: Sequence[Object], versions: Sequence[str]) -> bytes:
    """The content of a file: the same object in each version, one after the other. Readers take the first that they know."""
    ref = claim.ref
    content = {
        "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid, "generation": 1},
        **({"podClaimName": claim.pod_claim} if claim.pod_claim else {}),
        "requests": [{"name": request, "devices": list(devices)}],
    }
    objects = ({"kind": "DeviceMetadata", "apiVersion": f"{GROUP}/{version}", **content} for version in versions)
    return "".join(f"{json.dumps(each, indent=1)}\n" for each in objects).encode()


class MetadataFolder:
    """The files of one driver on this node, one folder for each claim. Without versions there are none."""

    def __init__(self, folder: Path, driver: str, versions: Sequence[str], known: Known) -> None:
        unknown = [version for version in versions if version not in VERSIONS]
        if unknown:
            raise ConfigurationError(
                f"there is no version {unknown[0]!r} of device metadata; {suggestion(unknown[0], VERSIONS)}"
            )
        self._folder, self._driver, self._versions, self._known = folder, driver, versions, known

    def write(self, claim: PreparedClaim, find: Callable[[str, str], Device]) -> dict[str, Object]:
        """Write a claim's files; for each request the mount that brings its file into containers, in the words of CDI."""
        if not self._versions:
            return {}
        requests: dict[str, list[AllocatedDevice]] = {}
        for use in claim.devices:
            requests.setdefault(use.base_request, []).append(use)
        return {request: self._write(claim, request, uses, find) for request, uses in requests.items()}

    def remove(self, uid: str) -> None:
        """Remove a claim's files."""
        shutil.rmtree(self._folder / uid, ignore_errors=True)

    def sweep(self, known: Collection[str]) -> None:
        """Remove the files of claims that are not prepared any more."""
        for path in self._folder.glob("*"):
            if matches(UID, path.name) and path.name not in known:
                self.remove(path.name)

    def _content(self, claim: PreparedClaim, request: str, devices: Sequence[Object]) -> bytes:
        return stream(claim, request, devices, self._versions)

    def _write(
        self, claim: PreparedClaim, request: str, uses: Sequence[AllocatedDevice], find: Callable[[str, str], Device]
    ) -> Object:
        found = [(find(use.pool, use.device), use) for use in uses]
        devices = [described(device, use, self._driver, self._known(device, use)) for device, use in found]
        content = self._content(claim, uses[0].request, devices)
        path = self._folder / claim.ref.uid / f"{request}.json"
        # A running container has the file itself, not its name: one that says the same already stays as it is.
        if not (path.is_file() and path.read_bytes() == content):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            write_atomically(
                path, content, 0o644, is_durable=False
            )  # after a power cut the kubelet prepares the claim again
        where = container_path(claim, request, self._driver)
        return {"hostPath": str(path), "containerPath": where, "options": ["ro", "bind"]}
