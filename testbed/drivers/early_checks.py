"""Checks what a driver file refers to before there is a cluster: manifests, rendered, and image archives. Used by bringup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from testbed.drivers.companions import all_manifests, image_archives
from testbed.drivers.manifests import tools
from testbed.errors import UsageError
from testbed.images.archives import names_in
from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?")  # names of roles may contain colons
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?")
_MAX_NAME = 253


def check(drivers: Sequence[DriverFile], hardware: Path | None, kubernetes: str = "") -> None:
    """Raise UsageError for a manifest that is not valid YAML or no Kubernetes object, and for an archive without images."""
    before = [each.previous for each in drivers[:1] if each.previous]
    tools.fetch_missing([*drivers, *before])
    for each in (*_objects(drivers, hardware, kubernetes), *_objects(before, hardware, kubernetes)):
        _check_object(each)
    for archive in image_archives(drivers):
        names_in(archive)


def _objects(drivers: Sequence[DriverFile], hardware: Path | None, kubernetes: str) -> list[Object]:
    return all_manifests(drivers, image="image", hardware=hardware, kubernetes=kubernetes) if drivers else []


def _check_object(manifest: Object) -> None:
    metadata = manifest["metadata"]
    values = {
        "apiVersion": (manifest["apiVersion"], _VERSION),
        "kind": (manifest["kind"], _KIND),
        "metadata.name": (metadata["name"], _NAME),
        "metadata.namespace": (metadata.get("namespace", "default"), _NAME),
    }
    for field, (value, pattern) in values.items():
        if not isinstance(value, str) or len(value) > _MAX_NAME or not pattern.fullmatch(value):
            raise UsageError(
                f"a manifest of the driver has an invalid {field}: {value!r:.100} (kind {manifest['kind']!r:.60}, "
                f"name {metadata['name']!r:.60})",
                hint="correct the manifest; dra-testbed up --plan shows all objects",
            )
