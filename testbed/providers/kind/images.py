"""Images for kind nodes: which one the nodes are made of, and bringing archives into nodes that run."""

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
from testbed.providers.kind.engine import Engine, last_line, lost

# What Docker, Podman and nerdctl say when no registry answered; anything else is an answer of one, or no matter of registries.
_OUT_OF_REACH = re.compile(
    r"no such host|dial (tcp|udp)|i/o timeout|timed out after \d+ s|TLS handshake timeout|Client\.Timeout exceeded"
    r"|context deadline exceeded|tls: |x509: |proxyconnect|server gave HTTP response to HTTPS client"
    r"|connection reset by peer|: (unexpected )?EOF\b"
    r'|\b(Get|Head) "?https?://[^\s"]+"?: (Forbidden|Proxy Authentication Required)'  # so a proxy refuses to connect
    r"|\b50[234] (Bad Gateway|Service Unavailable|Gateway Time-?out)",
    re.IGNORECASE,
)


class OutOfReach(TestbedError):
    """No registry answered."""


def for_nodes(engine: Engine, wanted: NodeImage, given: str | None, progress: Progress) -> str:
    """An image that the engine has: the one that was asked for, else the published one, else one that is made here."""
    if given:
        _have(engine, given, progress)
        check_version(engine, given, wanted.kubernetes)
        return given
    if engine.has_image(wanted.published):
        return wanted.published
    try:
        _have(engine, wanted.published, progress)
    except OutOfReach as nowhere:
        progress.say(f"{nowhere.what}; making a node image from packages instead")
        return _made_instead(engine, wanted, nowhere, progress)
    return wanted.published


def _have(engine: Engine, reference: str, progress: Progress) -> None:
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
        return OutOfReach(what, hint=f"look at the network, or at a proxy or a registry mirror of {engine.program}")
    if failed.disk_full:
        return TestbedError(what, hint=FREE_DISK_SPACE)
    login = f"{engine.program} login {_registry(reference)}".strip()
    others = "--node-image IMAGE; `dra-testbed images node` makes one without a registry, to load and name so"
    return TestbedError(what, hint=f"{login}, a registry mirror of {engine.program}, or {others}")


def _registry(reference: str) -> str:
    """The registry that a reference names; '' for the one that engines ask when it names none."""
    first, slash, _ = reference.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def _made_instead(engine: Engine, wanted: NodeImage, nowhere: OutOfReach, progress: Progress) -> str:
    try:
        return _made(engine, wanted, progress)
    except TestbedError as failed:
        hint = "; or ".join(each.hint for each in (nowhere, failed) if each.hint)
        raise TestbedError(
            f"there is no node image: {nowhere.what}\n  and none could be made here: {failed.what}", hint=hint
        ) from failed


def _made(engine: Engine, wanted: NodeImage, progress: Progress) -> str:
    reference, archive = wanted.make(progress)
    loaded = engine.run("image", "inspect", "--format", "{{.Id}}", reference, check=False)
    if not loaded.ok or loaded.stdout.strip().removeprefix("sha256:") not in ids_of(archive):
        with progress.step(f"node image {reference} loaded into {engine.program}"):
            engine.load(archive)
    return reference


def check_version(engine: Engine, reference: str, kubernetes: str) -> None:
    """The nodes' Kubernetes must be of the minor version that was asked for: gates and the judging depend on it."""
    found = _version_in(engine, reference)
    if found.split(".")[:2] != kubernetes.split(".")[:2]:
        raise UsageError(
            f"{reference} is Kubernetes {found}, but {kubernetes} was asked for",
            hint=f"--kubernetes {'.'.join(found.split('.')[:2])}, or another --node-image",
        )


def _version_in(engine: Engine, reference: str) -> str:
    try:
        said = engine.run("run", "--rm", "--entrypoint", "cat", reference, "/kind/version")
    except CommandFailed as failed:
        if re.search(r"cat: .*/kind/version|exec.*\bcat\b.*(not found|no such file)", failed.output, re.IGNORECASE):
            raise UsageError(f"{reference} is no image of a kind node: it has no /kind/version") from failed
        raise lost(engine, f"cannot look into {reference}", failed) from failed
    return said.stdout.strip().removeprefix("v")


def ids_of(archive: Path) -> set[str]:
    """What engines call the image of an archive: the digest of its configuration, or of its manifest; Podman without `sha256:`."""
    listed = _member(archive, "manifest.json")
    digests = re.findall(r"[0-9a-f]{64}", str(listed[0]["Config"])) if isinstance(listed, list) and listed else []
    return {*digests, *(digest.removeprefix("sha256:") for digest in named(archive).values())}


def named(archive: Path) -> dict[str, str]:
    """The images of an OCI archive: reference to manifest digest. Empty for archives of another kind."""
    index = _member(archive, "index.json")
    listed = index["manifests"] if isinstance(index, dict) and "manifests" in index else []
    names = {each.get("annotations", {}).get("io.containerd.image.name", ""): each["digest"] for each in listed}
    return {name: digest for name, digest in names.items() if name}


def missing(archives: Sequence[Path], listed: str) -> list[Path]:
    """The archives of which a node lacks something; `listed` is what `ctr images list` says there."""
    there = {(words[0], words[2]) for line in listed.splitlines()[1:] if len(words := line.split()) > 2}
    return [archive for archive in archives if not (images := named(archive)) or set(images.items()) - there]


def _member(archive: Path, name: str) -> Any:
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile(name)
            return json.load(member) if member else {}
    except (KeyError, tarfile.TarError, ValueError):
        return {}
