"""Write an image as one tar file that is both an OCI image layout and a docker archive. Used by the modules that build images.

`ctr images import`, `kind load image-archive`, `docker load` and `podman load` can all read this file. Layers are not compressed:
every `up` imports the archives on every node, and decompression would take ten times as long as reading (0.3 s for 54 MB).
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.images import tarball

_EPOCH = "1970-01-01T00:00:00Z"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
PLAIN_LAYER = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class Image:
    """An image in the cache: its purpose, the name that pods use, the archive, and the digest of its manifest."""

    name: str
    reference: str
    archive: Path
    digest: str


@dataclass(frozen=True)
class ContainerSettings:
    """The settings with which containers of an image start."""

    entrypoint: Sequence[str] = ()
    cmd: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_dir: str = "/"
    stop_signal: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the settings in the format of the image configuration."""
        settings = {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.cmd),
            "Env": [f"{key}={value}" for key, value in self.env.items()],
            "User": self.user,
            "WorkingDir": self.working_dir,
            "StopSignal": self.stop_signal,
        }
        return {key: value for key, value in settings.items() if value}


@dataclass(frozen=True)
class Layer:
    """A layer's file, its digest ("sha256:…"), size and media type."""

    file: Path
    digest: str
    size: int
    media_type: str = PLAIN_LAYER

    @classmethod
    def of(cls, file: Path, media_type: str = PLAIN_LAYER) -> Layer:
        """Return the layer of a file."""
        with file.open("rb") as content:
            return cls(
                file, f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}", file.stat().st_size, media_type
            )


def architecture() -> str:
    """Return this machine's architecture by its name in images."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def write_layer(members: Iterable[tarball.Member], into: Path) -> Layer:
    """Write a layer with these members."""
    tarball.write(members, into)
    return Layer.of(into)


def configuration(settings: ContainerSettings, layers: Sequence[Layer], history: Sequence[str]) -> bytes:
    """Return the configuration of an image of uncompressed layers; `history` describes the content of each layer."""
    return _json({
        "created": _EPOCH,
        "architecture": architecture(),
        "os": "linux",
        "config": settings.as_json(),
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created": _EPOCH, "created_by": text} for text in history],
    })  # fmt: skip


def write_archive(reference: str, config: bytes, layers: Sequence[Layer], into: Path) -> str:
    """Write an archive with one image; return the digest of its manifest."""
    manifest = _json({
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(config, _CONFIG),
        "layers": [{"mediaType": layer.media_type, "digest": layer.digest, "size": layer.size} for layer in layers],
    })  # fmt: skip
    blobs: dict[str, Path | bytes] = {_digest(config): config, _digest(manifest): manifest}
    blobs |= {layer.digest: layer.file for layer in layers}
    tarball.write(
        [
            tarball.file("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
            tarball.file("index.json", _index(reference, config, manifest)),
            tarball.file("manifest.json", _docker_manifest(reference, config, layers)),
            *(tarball.file(_blob(digest), content) for digest, content in blobs.items()),
        ],
        into,
    )
    return _digest(manifest)


def _index(reference: str, config: bytes, manifest: bytes) -> bytes:
    fields = json.loads(config)
    names = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference}
    platform = {key: fields[key] for key in ("architecture", "os", "variant") if key in fields}
    entry = {**_descriptor(manifest, _MANIFEST), "platform": platform, "annotations": names}
    return _json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]})


def _docker_manifest(reference: str, config: bytes, layers: Sequence[Layer]) -> bytes:
    return _json([
        {"Config": _blob(_digest(config)), "RepoTags": [reference], "Layers": [_blob(layer.digest) for layer in layers]}
    ])  # fmt: skip


def _descriptor(content: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
