"""Whose an object is. Everything that we make in a cluster carries these labels, and an annotation that says who made it, and where.

Providers, drivers, the vocabulary and bringup mark with it; `down` and `sweep` find by it, so that two people whose testbeds have one
name on one cluster never meet.
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
PROCESS = "dra-testbed.example/process"  # which of a run's processes made it
OWNER = "dra-testbed.example/owner"
DRIVER = (
    "dra-testbed.example/driver"  # of a driver's own objects: its name, because what it publishes has no mark of ours
)
ANY_TESTBED = f"{MANAGED_BY}={OURS}"


@dataclass(frozen=True)
class Owner:
    """A testbed: its name, its random identity, and the process that made it, on which host, with the testbed's folder there."""

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
        """Selects what belongs to it, and nothing else."""
        return f"{ANY_TESTBED},{IDENTITY}={self.identity}"

    @property
    def manager(self) -> str:
        """Its name for server-side apply: two testbeds that make one object at the same moment are in conflict."""
        return f"dra-testbed/{self.identity}"

    def mark(self, manifest: Object, **labels: str) -> Object:
        """The object as this testbed's own."""
        metadata = manifest["metadata"]
        ours = {MANAGED_BY: OURS, TESTBED: self.testbed, IDENTITY: self.identity, **labels}
        marked = {
            "labels": {**(metadata.get("labels") or {}), **ours},
            "annotations": {**(metadata.get("annotations") or {}), OWNER: json.dumps(asdict(self))},
        }
        return {**manifest, "metadata": {**metadata, **marked}}

    def mark_driver(self, manifest: Object, driver: str) -> Object:
        """An object of the driver's installation as this testbed's own."""
        made = self.mark(manifest)
        annotations = {**made["metadata"]["annotations"], DRIVER: driver}
        return {**made, "metadata": {**made["metadata"], "annotations": annotations}}

    def owns(self, found: Object) -> bool:
        """Whether the object is this testbed's."""
        return is_ours(found) and identity_of(found) == self.identity

    def __str__(self) -> str:
        where = f" of host {self.host} (process {self.pid})" if self.host else ""
        return f"testbed {self.testbed}{where}"


def new_identity() -> str:
    """An identity that no other testbed has."""
    return secrets.token_hex(6)


def is_ours(found: Object) -> bool:
    """Whether a testbed made it, this one or another."""
    return _labels(found).get(MANAGED_BY) == OURS


def identity_of(found: Object) -> str:
    """The identity of the testbed that made it; '' for what no testbed made."""
    return str(_labels(found).get(IDENTITY, ""))


def owner_of(found: Iterable[Object]) -> Owner | None:
    """The testbed that made these objects, as one of them says; controllers copy labels, but not what is written beside them."""
    for each in found:
        text = (each["metadata"].get("annotations") or {}).get(OWNER)
        try:
            owner = Owner(**json.loads(text)) if text else None
        except (ValueError, TypeError):  # somebody wrote it, or another version of us did
            continue
        if owner and owner.identity == identity_of(each):
            return owner
    return None


def _labels(found: Object) -> dict[str, str]:
    return found["metadata"].get("labels") or {}
