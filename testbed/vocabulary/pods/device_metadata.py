"""Device metadata: the files in containers that say which devices they have. Pure; the word `container` reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.kube.client import Object
from testbed.vocabulary.driver.published_values import with_domains

FOLDER = "/var/run/kubernetes.io/dra-device-attributes"
_GROUP = "metadata.resource.k8s.io"
_KNOWN = (f"{_GROUP}/v1beta1", f"{_GROUP}/v1alpha1")
_VERSION = re.compile(rf"{re.escape(_GROUP)}/v(\d+)(?:(alpha|beta)(\d+))?")


@dataclass(frozen=True)
class Metadata:
    """What one file says. `versions` are those in which it says so, in their order."""

    content: Object
    versions: tuple[str, ...] = ()

    @property
    def claim(self) -> tuple[str, str, str]:
        """Namespace, name and UID of the claim."""
        about = self.content.get("metadata", {})
        return str(about.get("namespace", "")), str(about.get("name", "")), str(about.get("uid", ""))

    @property
    def generation(self) -> int:
        """How often the file was written, the first time among them."""
        return int(self.content.get("metadata", {}).get("generation", 0))

    @property
    def newest_first(self) -> tuple[str, ...]:
        """The versions in the order that they should have."""
        return tuple(sorted(self.versions, key=_age, reverse=True))

    @property
    def pod_claim(self) -> str:
        """The pod's own name for a claim that a template made."""
        return str(self.content.get("podClaimName", ""))

    @property
    def devices(self) -> frozenset[Device]:
        """The devices of the request."""
        return frozenset(Device(each["driver"], each["pool"], each["name"]) for each in self._devices())

    def attributes(self, device: Device) -> dict[str, Object]:
        """All attributes of a device, by their full names; their values are as in a ResourceSlice."""
        said = (each for each in self._devices() if (each["pool"], each["name"]) == (device.pool, device.name))
        return with_domains(next(said, {}).get("attributes") or {}, device.driver)

    def _devices(self) -> list[Object]:
        requests = self.content.get("requests") or ()
        return [device for request in requests for device in request.get("devices") or ()]


def read(text: str, path: str) -> Metadata:
    """The first object of a known version: a file has one object after the other, for readers of different age."""
    objects = [each for each in _stream(text, path) if isinstance(each, dict)]
    named = [str(each.get("apiVersion")) for each in objects]
    versions = tuple(each for each in named if _VERSION.fullmatch(each))
    for content in objects:
        if content.get("apiVersion") in _KNOWN:
            return _checked(Metadata(content, versions), path)
    raise DriverFailed(f"{path} in the container has no object of {' or '.join(_KNOWN)}")


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
    """The same, of which everything can be asked."""
    try:
        _ = found.claim, found.generation, [found.attributes(device) for device in found.devices]
    except KeyError as missing:
        raise DriverFailed(f"{path} in the container has a device without {missing}") from missing
    except (AttributeError, TypeError, ValueError) as wrong:
        raise DriverFailed(f"{path} in the container is not shaped as its version says: {wrong}") from wrong
    return found


def _age(version: str) -> tuple[str, int, int]:
    """What sorts versions as Kubernetes does: v2, v1, v1beta1, v1alpha2."""
    known = _VERSION.fullmatch(version)
    return (known[2] or "final", int(known[1]), int(known[3] or 0)) if known else ("", 0, 0)
