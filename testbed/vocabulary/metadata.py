"""Device metadata: the files in containers that say which devices they have. Pure; the word `container` reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from testbed.drivers.slices import Device
from testbed.errors import DriverFailed
from testbed.kube.client import Object

FOLDER = "/var/run/kubernetes.io/dra-device-attributes"
_KNOWN = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")


@dataclass(frozen=True)
class Metadata:
    """What one file says."""

    content: Object

    @property
    def claim(self) -> tuple[str, str]:
        """Name and UID of the claim."""
        about = self.content.get("metadata", {})
        return str(about.get("name", "")), str(about.get("uid", ""))

    @property
    def pod_claim(self) -> str:
        """The pod's own name for a claim that a template made."""
        return str(self.content.get("podClaimName", ""))

    @property
    def devices(self) -> frozenset[Device]:
        """The devices of the request."""
        return frozenset(Device(each["driver"], each["pool"], each["name"]) for each in self._devices())

    def attribute(self, device: Device, name: str) -> Object:
        """An attribute of a device, as a ResourceSlice has it; nothing where it is not said."""
        said = (each for each in self._devices() if (each["pool"], each["name"]) == (device.pool, device.name))
        return dict(next(said, {}).get("attributes", {}).get(name, {}))

    def _devices(self) -> list[Object]:
        return [device for request in self.content.get("requests", ()) for device in request.get("devices", ())]


def read(text: str, path: str) -> Metadata:
    """The first object of a known version: a file has one object after the other, for readers of different age."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        try:
            content, end = decoder.raw_decode(rest)
        except json.JSONDecodeError as broken:
            raise DriverFailed(f"{path} in the container is not JSON: {broken}") from broken
        if isinstance(content, dict) and content.get("apiVersion") in _KNOWN:
            return Metadata(content)
        rest = rest[end:].strip()
    raise DriverFailed(f"{path} in the container has no object of {' or '.join(_KNOWN)}")
