"""Reads the lock files in ci/versions: the programs, feature gates and API versions of each Kubernetes minor.

Used by the sources, the CLI and the providers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from testbed import folders
from testbed.errors import TestbedError, UsageError, did_you_mean

DIGESTS = "digests.yaml"  # digests of downloads by their official URL; `pin` writes them
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times as fast


class LockModel(BaseModel):
    """Base class of the models of files in ci/versions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Download(LockModel):
    """Where upstream publishes programs: URL, URL of the checksums, and the program's path in an archive. Empty: nowhere."""

    url: str = ""
    checksum: str = ""
    member: str = ""


class Build(LockModel):
    """How to build programs with Go. `libraries` maps names for pkg-config to distribution packages."""

    ldflags: Sequence[str]
    tags: Sequence[str] = ()
    cgo: bool = False
    libraries: Mapping[str, str] = {}


class Package(LockModel):
    """A distribution package with a program, and the program's path in it."""

    name: str
    file: str


class Upstream(LockModel):
    """One upstream project and its locked version. All its programs are of one Go module. `sha256` has digests of downloads by URL."""

    name: str
    version: str
    minor: str
    module: str
    download: Download = Download()
    build: Build
    package: Package | None
    sha256: Mapping[str, str]

    @property
    def module_folder(self) -> Path:
        """Return the folder with go.mod and go.sum from which the programs are built."""
        return folders.data("versions") / "go" / self.module


class Program(LockModel):
    """One executable: its name, its file name, and the arguments that make it print its version."""

    name: str
    file: str
    package: str
    version_args: Sequence[str]
    upstream: Upstream

    @property
    def version(self) -> str:
        """Return the locked version."""
        return self.upstream.version

    def url(self, arch: str) -> str:
        """Return the official URL of the download that contains this program."""
        return self.expand(self.upstream.download.url, arch)

    def pinned(self, arch: str) -> str:
        """Return the locked digest of that download, or an empty string."""
        return self.upstream.sha256.get(self.url(arch), "")

    def expand(self, template: str, arch: str, url: str = "") -> str:
        """Expand a template of upstreams.yaml with this program's values."""
        return template.format(
            version=self.version, minor=self.upstream.minor.split(".")[1], arch=arch, file=self.file, url=url
        )


class Gate(LockModel):
    """A feature gate. Locked ones cannot be changed, and the gates in `needs` must be on too."""

    stage: str
    default: bool
    locked: bool = False
    needs: Sequence[str] = ()


class ApiFacts(LockModel):
    """The feature gates and the versions of resource.k8s.io of a minor."""

    resource_api: Mapping[str, Mapping[str, bool]]
    unknown_to_scheduler: Sequence[str]
    gates: Mapping[str, Gate]


class Lock(LockModel):
    """The lock of one Kubernetes minor."""

    minor: str
    kubernetes: str
    node_image: str  # the image that kind publishes for this minor, with its digest
    programs: Mapping[str, Program]

    def program(self, name: str) -> Program:
        """Return the program of that name. Raise UsageError if there is none."""
        try:
            return self.programs[name]
        except KeyError as unknown:
            raise UsageError(f"unknown program {name!r}", hint=did_you_mean(name, self.programs)) from unknown

    @cached_property
    def api_facts(self) -> ApiFacts:
        """Return the gates and API versions of this minor, which are read on first use."""
        return ApiFacts.model_validate(_read(f"{self.minor}.gates.yaml"))

    @property
    def gates(self) -> Mapping[str, Gate]:
        """Return the feature gates by name."""
        return self.api_facts.gates

    @property
    def resource_versions(self) -> Mapping[str, bool]:
        """Return the versions of resource.k8s.io, and whether each is served without --runtime-config."""
        return {version: facts["served_by_default"] for version, facts in self.api_facts.resource_api.items()}


def minors() -> tuple[str, ...]:
    """Return the locked Kubernetes minors, newest first. The first one is the default."""
    found = (re.fullmatch(r"1\.(\d+)", path.stem) for path in folders.data("versions").glob("1.*.yaml"))
    return tuple(f"1.{number}" for number in sorted((int(match[1]) for match in found if match), reverse=True))


def peers() -> Lock:
    """Return the drivers that `bench driver` compares with. Testbeds do not need them, so they are not in the lock of a minor."""
    upstreams = _read("peers.yaml")
    minor = upstreams.pop("kubernetes")
    pins = {name: {"version": recipe.pop("version"), "module": name} for name, recipe in upstreams.items()}
    return _locked(minor, upstreams, pins)


def lock_for(version: str) -> Lock:
    """Return the lock of a minor ("1.37") or of its locked patch ("1.37.1"). Raise UsageError for other versions."""
    wanted = version.removeprefix("v")
    minor = ".".join(wanted.split(".")[:2])
    if minor not in minors():
        raise UsageError(f"Kubernetes {version} is not supported", hint=f"use one of {', '.join(minors())}")
    lock = _lock(minor)
    if wanted not in (minor, lock.kubernetes):
        raise UsageError(
            f"Kubernetes {version} is not locked",
            hint=f"use {lock.kubernetes}; or, for a build of your own, --kubernetes {minor} --binaries-from FOLDER",
        )
    return lock


def _lock(minor: str) -> Lock:
    pins = _read(f"{minor}.yaml")
    image = pins.pop("node_image")
    return _locked(minor, _read("upstreams.yaml"), pins, image)


def _locked(minor: str, upstreams: dict[str, Any], pins: dict[str, Any], node_image: str = "") -> Lock:
    programs: dict[str, Program] = {}
    digests = _read(DIGESTS)
    try:
        for name, recipe in upstreams.items():
            members = recipe.pop("programs")
            upstream = Upstream.model_validate(
                {"name": name, "minor": minor, "sha256": digests, "package": None} | recipe | pins[name]
            )
            for program, facts in members.items():
                fields = {"name": program, "file": program, "upstream": upstream} | facts
                programs[program] = Program.model_validate(fields)
    except (KeyError, ValueError) as broken:
        raise TestbedError(
            f"the lock of Kubernetes {minor} is invalid: {broken}", hint="reinstall dra-testbed"
        ) from broken
    kubernetes = programs["kubelet"].version if "kubelet" in programs else minor
    return Lock(minor=minor, kubernetes=kubernetes, node_image=node_image, programs=programs)


def _read(name: str) -> dict[str, Any]:
    path = folders.data("versions") / name
    try:
        content = yaml.load(path.read_text(), _Loader)  # noqa: S506 - both loaders are the safe ones
    except (OSError, yaml.YAMLError) as broken:
        raise TestbedError(f"cannot read {path}: {broken}", hint="reinstall dra-testbed") from broken
    assert isinstance(content, dict)  # noqa: S101 - our own data; a test reads every file
    return content
