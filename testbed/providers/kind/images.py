"""Images for kind clusters: the node image, and which archives a node lacks. For the provider and its clusters."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import FREE_DISK_SPACE, CommandFailed, TestbedError, UsageError
from testbed.progress import Progress
from testbed.providers.base import NodeImage
from testbed.providers.kind.engine import Engine, engine_failed, last_line

# Errors of Docker, Podman and nerdctl if no registry answered. All others come from a registry, or have another cause.
_OUT_OF_REACH = re.compile(
    r"no such host|dial (tcp|udp)|i/o timeout|timed out after \d+ s|TLS handshake timeout|Client\.Timeout exceeded"
    r"|context deadline exceeded|tls: |x509: |proxyconnect|server gave HTTP response to HTTPS client"
    r"|connection reset by peer|: (unexpected )?EOF\b"
    r'|\b(Get|Head) "?https?://[^\s"]+"?: (Forbidden|Proxy Authentication Required)'  # of a proxy
    r"|\b50[234] (Bad Gateway|Service Unavailable|Gateway Time-?out)",
    re.IGNORECASE,
)


class NoRegistry(TestbedError):
    """No registry answered."""


def node_image(engine: Engine, wanted: NodeImage, given: str | None, progress: Progress) -> str:
    """Return an image that the engine has: the given one, otherwise the published one, otherwise one that is built here."""
    if given:
        _ensure(engine, given, progress)
        check_version(engine, given, wanted.kubernetes)
        return given
    if engine.has_image(wanted.published):
        return wanted.published
    try:
        _ensure(engine, wanted.published, progress)
    except NoRegistry as unreachable:
        progress.say(f"{unreachable.what}; building a node image from packages instead")
        return _built_instead(engine, wanted, unreachable, progress)
    return wanted.published


def _ensure(engine: Engine, reference: str, progress: Progress) -> None:
    if engine.has_image(reference):
        return
    with progress.step(f"node image {reference.partition('@')[0]} pulled"):
        try:
            engine.pull(reference)
        except CommandFailed as failed:
            raise _not_pulled(engine, reference, failed) from failed


def _not_pulled(engine: Engine, reference: str, failed: CommandFailed) -> TestbedError:
    what = f"{engine.program} cannot pull {reference.partition('@')[0]}: {last_line(failed)}"
    if _OUT_OF_REACH.search(f"{failed.status}\n{failed.output}"):
        return NoRegistry(what, hint=f"check the network, and the proxy and registry mirrors of {engine.program}")
    if failed.disk_full:
        return TestbedError(what, hint=FREE_DISK_SPACE)
    login = f"{engine.program} login {_registry(reference)}".strip()
    others = "--node-image IMAGE; `dra-testbed images node` builds one without a registry"
    return TestbedError(what, hint=f"{login}, a registry mirror of {engine.program}, or {others}")


def _registry(reference: str) -> str:
    """Return the registry in a reference; '' if it has none, so that the engine uses its default."""
    first, slash, _ = reference.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def _built_instead(engine: Engine, wanted: NodeImage, unreachable: NoRegistry, progress: Progress) -> str:
    try:
        return _built(engine, wanted, progress)
    except TestbedError as failed:
        hint = "; or ".join(each.hint for each in (unreachable, failed) if each.hint)
        raise TestbedError(
            f"there is no node image: {unreachable.what}\n  and none could be built here: {failed.what}", hint=hint
        ) from failed


def _built(engine: Engine, wanted: NodeImage, progress: Progress) -> str:
    reference, archive = wanted.make(progress)
    loaded = engine.run("image", "inspect", "--format", "{{.Id}}", reference, check=False)
    if not loaded.ok or loaded.stdout.strip().removeprefix("sha256:") not in ids_of(archive):
        with progress.step(f"node image {reference} loaded into {engine.program}"):
            engine.load(archive)
    return reference


def check_version(engine: Engine, reference: str, kubernetes: str) -> None:
    """Raise UsageError if the image has another minor version of Kubernetes than the spec, on which feature gates depend."""
    found = _version_in(engine, reference)
    if found.split(".")[:2] != kubernetes.split(".")[:2]:
        raise UsageError(
            f"node image {reference} has Kubernetes {found}, but {kubernetes} was asked for",
            hint=f"--kubernetes {'.'.join(found.split('.')[:2])}, or another --node-image",
        )


def _version_in(engine: Engine, reference: str) -> str:
    try:
        answer = engine.run("run", "--rm", "--entrypoint", "cat", reference, "/kind/version")
    except CommandFailed as failed:
        if re.search(r"cat: .*/kind/version|exec.*\bcat\b.*(not found|no such file)", failed.output, re.IGNORECASE):
            raise UsageError(f"{reference} is not a kind node image: it has no /kind/version") from failed
        raise engine_failed(engine, f"cannot read /kind/version in {reference}", failed) from failed
    return answer.stdout.strip().removeprefix("v")


def ids_of(archive: Path) -> set[str]:
    """Return the possible IDs of an archive's image: the digest of its configuration or of its manifest, without `sha256:`."""
    listed = _member(archive, "manifest.json")
    digests = re.findall(r"[0-9a-f]{64}", str(listed[0]["Config"])) if isinstance(listed, list) and listed else []
    return {*digests, *(digest.removeprefix("sha256:") for digest in images_in(archive).values())}


def images_in(archive: Path) -> dict[str, str]:
    """Return the images of an OCI archive, reference to manifest digest; an empty mapping for other archives."""
    index = _member(archive, "index.json")
    listed = index["manifests"] if isinstance(index, dict) and "manifests" in index else []
    names = {each.get("annotations", {}).get("io.containerd.image.name", ""): each["digest"] for each in listed}
    return {name: digest for name, digest in names.items() if name}


def archives_to_load(archives: Sequence[Path], listed: str) -> list[Path]:
    """Return the archives with images that a node lacks. `listed` is the output of `ctr images list` on the node."""
    present = {(words[0], words[2]) for line in listed.splitlines()[1:] if len(words := line.split()) > 2}
    return [archive for archive in archives if not (images := images_in(archive)) or set(images.items()) - present]


def _member(archive: Path, name: str) -> Any:
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile(name)
            return json.load(member) if member else {}
    except (KeyError, tarfile.TarError, ValueError):
        return {}
