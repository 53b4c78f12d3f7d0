"""Read archives of images that users provide. Used by the checks of driver files, by installing, and by `dra-testbed images load`."""

from __future__ import annotations

import contextlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.images.names import complete

_INDEX, _DOCKER = "index.json", "manifest.json"  # of an OCI archive, and of `docker save`; many archives have both
_MAX_LIST = 16 << 20
_ANNOTATIONS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


def names_in(archive: Path) -> tuple[str, ...]:
    """Return the complete names of the images in an archive, without duplicates. Raise UsageError if it is no archive of images."""
    lists = _lists(archive)
    if not lists:
        raise UsageError(
            f"image archive {archive} contains neither {_INDEX} nor {_DOCKER}, so it is no image",
            hint="write it with docker save, or with a tool that writes OCI archives",
        )
    names = [*_docker_names(lists.get(_DOCKER)), *_index_names(lists.get(_INDEX))]
    return tuple(dict.fromkeys(complete(name) for name in names))


def _lists(archive: Path) -> dict[str, Any]:
    try:
        with tarfile.open(archive) as tar:
            return {
                name: _json(tar, member)
                for member in tar
                if (name := member.name.removeprefix("./")) in (_INDEX, _DOCKER)
            }
    except (OSError, EOFError, tarfile.TarError) as broken:
        raise UsageError(
            f"image archive {archive} cannot be read: {broken}", hint="write it again with docker save"
        ) from broken


def _json(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    content = tar.extractfile(member)
    with contextlib.suppress(ValueError):
        return json.loads(content.read(_MAX_LIST)) if content else None
    return None


def _docker_names(listed: Any) -> Iterator[str]:
    for image in _objects(listed):
        yield from (name for name in image.get("RepoTags") or () if isinstance(name, str))


def _index_names(listed: Any) -> Iterator[str]:
    for image in _objects(listed.get("manifests") if isinstance(listed, dict) else None):
        annotations = image.get("annotations") or {}
        # Docker writes the bare tag as the second one.
        yield from (name for key in _ANNOTATIONS if "/" in (name := str(annotations.get(key, ""))))


def _objects(listed: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that are objects; other archives have something else there."""
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
