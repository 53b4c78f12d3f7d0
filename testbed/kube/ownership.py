"""Marks the objects that a testbed creates, with labels for its identity and an annotation with its owner: process, host and folder.

Providers, drivers, the vocabulary and bringup mark objects; `down` and `sweep` find them. The identity keeps testbeds of the same name in
one cluster apart.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from testbed.kube.client import Object

MANAGED_BY, OURS = "dra-testbed.example/managed-by", "dra-testbed"
TESTBED = "dra-testbed.example/testbed"
IDENTITY = "dra-testbed.example/testbed-id"
REQUIREMENT = "dra-testbed.example/requirement"
PROCESS = "dra-testbed.example/process"  # the process of the run that created the object
OWNER = "dra-testbed.example/owner"
DRIVER = (
    "dra-testbed.example/driver"  # the driver that an object installs: what that driver publishes has no labels of ours
)
ANY_TESTBED = f"{MANAGED_BY}={OURS}"


@dataclass(frozen=True)
class Owner:
    """A testbed as the owner of objects: its name, random identity and folder, and the process and host that created it."""

    testbed: str
    identity: str
    host: str = ""
    boot: str = ""
    pid_space: str = ""
    pid: int = 0
    started: int = 0
    folder: str = ""

    @property
    def selector(self) -> str:
        """Return the label selector of this testbed's objects."""
        return f"{ANY_TESTBED},{IDENTITY}={self.identity}"

    @property
    def manager(self) -> str:
        """Return the field manager for server-side apply, so that two testbeds that create one object conflict."""
        return f"dra-testbed/{self.identity}"

    def mark(self, manifest: Object, **labels: str) -> Object:
        """Return the object with the labels and the annotation of this testbed."""
        metadata = manifest["metadata"]
        ours = {MANAGED_BY: OURS, TESTBED: self.testbed, IDENTITY: self.identity, **labels}
        marked = {
            "labels": {**(metadata.get("labels") or {}), **ours},
            "annotations": {**(metadata.get("annotations") or {}), OWNER: json.dumps(asdict(self))},
        }
        return {**manifest, "metadata": {**metadata, **marked}}

    def mark_driver(self, manifest: Object, driver: str) -> Object:
        """Return an object of a driver's installation with the marks of this testbed and the driver's name."""
        made = self.mark(manifest)
        annotations = {**made["metadata"]["annotations"], DRIVER: driver}
        return {**made, "metadata": {**made["metadata"], "annotations": annotations}}

    def owns(self, found: Object) -> bool:
        """Return True if this testbed created the object."""
        return is_ours(found) and identity_of(found) == self.identity

    def __str__(self) -> str:
        where = f" of host {self.host} (process {self.pid})" if self.host else ""
        return f"testbed {self.testbed}{where}"


_EXAMPLE = Owner("", "")


def new_identity() -> str:
    """Return a new random identity."""
    return secrets.token_hex(6)


def is_ours(found: Object) -> bool:
    """Return True if any testbed created the object."""
    return _labels(found).get(MANAGED_BY) == OURS


def identity_of(found: Object) -> str:
    """Return the identity of the testbed that created the object; '' if none did."""
    return str(_labels(found).get(IDENTITY, ""))


def owner_of(found: Iterable[Object]) -> Owner | None:
    """Return the testbed that created these objects. Objects that controllers create have its labels, but not the annotation."""
    for each in found:
        text = (each["metadata"].get("annotations") or {}).get(OWNER)
        owner = _parse_owner(text) if text else None
        if owner and owner.identity == identity_of(each):
            return owner
    return None


def _parse_owner(text: str) -> Owner | None:
    """Return the owner in an annotation; None if others, or another version of dra-testbed, wrote it."""
    try:
        owner = Owner(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    values = asdict(owner)
    has_types = all(type(value) is type(getattr(_EXAMPLE, name)) for name, value in values.items())
    return owner if has_types and "\0" not in owner.folder else None


def _labels(found: Object) -> dict[str, str]:
    return found["metadata"].get("labels") or {}
