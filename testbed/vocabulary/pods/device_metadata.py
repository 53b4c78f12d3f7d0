"""Device metadata (KEP-5304): the files in containers that describe their devices. Pure; Container reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.driver.published_values import with_domains

FOLDER = "/var/run/kubernetes.io/dra-device-attributes"
_GROUP = "metadata.resource.k8s.io"
_KNOWN = (f"{_GROUP}/v1beta1", f"{_GROUP}/v1alpha1")
_VERSION = re.compile(rf"{re.escape(_GROUP)}/v(\d+)(?:(alpha|beta)(\d+))?")


@dataclass(frozen=True)
class Metadata:
    """The content of one file. `versions` are the API versions of its objects, in their order."""

    content: Object
    versions: tuple[str, ...] = ()

    @property
    def claim(self) -> tuple[str, str, str]:
        """Return namespace, name and UID of the claim."""
        metadata = self.content.get("metadata", {})
        return str(metadata.get("namespace", "")), str(metadata.get("name", "")), str(metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        """Return the generation of the file, which increases with each write."""
        return int(self.content.get("metadata", {}).get("generation", 0))

    @property
    def newest_first(self) -> tuple[str, ...]:
        """Return the versions in the order in which the file should have them."""
        return tuple(sorted(self.versions, key=_age, reverse=True))

    @property
    def pod_claim(self) -> str:
        """Return the name in the pod's spec of a claim from a template."""
        return str(self.content.get("podClaimName", ""))

    @property
    def devices(self) -> CheckedSet[Device]:
        """Return the devices of the request."""
        return CheckedSet(Device(each["driver"], each["pool"], each["name"]) for each in self._devices())

    def attributes(self, device: Device) -> dict[str, Object]:
        """Return the attributes of a device by their full names, with their values as in a ResourceSlice."""
        found = (each for each in self._devices() if (each["pool"], each["name"]) == (device.pool, device.name))
        return with_domains(next(found, {}).get("attributes") or {}, device.driver)

    def _devices(self) -> list[Object]:
        requests = self.content.get("requests") or ()
        return [device for request in requests for device in request.get("devices") or ()]


def read(text: str, path: str) -> Metadata:
    """Return the first object in a known version: a file has an object for each version. Raise DriverFailed if the file is invalid."""
    objects = [each for each in _stream(text, path) if isinstance(each, dict)]
    named = [str(each.get("apiVersion")) for each in objects]
    versions = tuple(each for each in named if _VERSION.fullmatch(each))
    for content in objects:
        if content.get("apiVersion") in _KNOWN:
            return _checked(Metadata(content, versions), path)
    found = ", ".join(named) or "no object"
    raise DriverFailed(f"{path} in the container has no object of {' or '.join(_KNOWN)}\n  last seen: {found}")


def devices_in(text: str) -> frozenset[Device]:
    """Return the devices in all files of a container, one after the other. Raise DriverFailed if a file is invalid."""
    path = f"{FOLDER}/…"
    known = (each for each in _stream(text, path) if isinstance(each, dict) and each.get("apiVersion") in _KNOWN)
    return frozenset(device for each in known for device in _checked(Metadata(each), path).devices)


def _stream(text: str, path: str) -> Iterator[object]:
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        try:
            content, end = decoder.raw_decode(rest)
        except json.JSONDecodeError as broken:
            raise DriverFailed(f"{path} in the container is not JSON: {broken}") from broken
        yield content
        rest = rest[end:].strip()


def _checked(found: Metadata, path: str) -> Metadata:
    """Return the metadata if all its properties can be read; otherwise raise DriverFailed."""
    try:
        _ = found.claim, found.generation, [found.attributes(device) for device in found.devices]
    except KeyError as missing:
        raise DriverFailed(f"{path} in the container has a device without {missing}") from missing
    except (AttributeError, TypeError, ValueError) as wrong:
        raise DriverFailed(f"{path} in the container does not match the schema of its version: {wrong}") from wrong
    return found


def _age(version: str) -> tuple[str, int, int]:
    """Return a key that sorts versions as Kubernetes does: v2, v1, v1beta1, v1alpha2."""
    known = _VERSION.fullmatch(version)
    return (known[2] or "final", int(known[1]), int(known[3] or 0)) if known else ("", 0, 0)
