"""What each Kubernetes minor is made of, read from ci/versions; nothing here looks at the host.

The sources ask it where programs come from, the CLI and the providers which versions and feature gates there are.
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

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast


class LockModel(BaseModel):
    """The manners of every file in ci/versions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Download(LockModel):
    """Where upstream publishes a program: its address, that of its checksums, and its name in an archive. No address: nowhere."""

    url: str = ""
    checksum: str = ""
    member: str = ""


class Build(LockModel):
    """How the Go compiler makes a program; `libraries` maps what pkg-config must find to the package that has it."""

    ldflags: Sequence[str]
    tags: Sequence[str] = ()
    cgo: bool = False
    libraries: Mapping[str, str] = {}


class Package(LockModel):
    """The distribution's package that has a program as well, and the file in it."""

    name: str
    file: str


class Upstream(LockModel):
    """One project and the version of it that is locked; its programs come out of one Go module."""

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
        """The Go module, with its go.mod and go.sum, that the programs are built from."""
        return folders.data("versions") / "go" / self.module


class Program(LockModel):
    """One executable: our `name` for it, its `file` on disk, and what it `says` its version to."""

    name: str
    file: str
    package: str
    says: Sequence[str]
    upstream: Upstream

    @property
    def version(self) -> str:
        """The locked version."""
        return self.upstream.version

    def fill(self, template: str, arch: str, url: str = "") -> str:
        """A template of upstreams.yaml with this program's values in it."""
        return template.format(
            version=self.version, minor=self.upstream.minor.split(".")[1], arch=arch, file=self.file, url=url
        )


class Gate(LockModel):
    """A feature gate: its `stage` (alpha, beta, ga, deprecated); `locked` ones cannot be set, `needs` must be on too."""

    stage: str
    default: bool
    locked: bool = False
    needs: Sequence[str] = ()


class ApiFacts(LockModel):
    """What the programs of a minor know: feature gates and versions of resource.k8s.io."""

    resource_api: Mapping[str, Mapping[str, bool]]
    unknown_to_scheduler: Sequence[str]
    gates: Mapping[str, Gate]


class Lock(LockModel):
    """Everything that is locked for one Kubernetes minor."""

    minor: str
    kubernetes: str
    node_image: str  # the one that kind publishes for this minor, with its digest
    programs: Mapping[str, Program]

    def program(self, name: str) -> Program:
        """The program of that name; an unknown one is the user's mistake."""
        try:
            return self.programs[name]
        except KeyError as unknown:
            raise UsageError(f"no program is called {name!r}", hint=did_you_mean(name, self.programs)) from unknown

    @cached_property
    def knowledge(self) -> ApiFacts:
        """What this minor's programs know; read when it is first asked for."""
        return ApiFacts.model_validate(_read(f"{self.minor}.gates.yaml"))

    @property
    def gates(self) -> Mapping[str, Gate]:
        """The feature gates by name."""
        return self.knowledge.gates

    @property
    def resource_versions(self) -> Mapping[str, bool]:
        """The versions of resource.k8s.io, and whether each is served without --runtime-config."""
        return {version: said["served_by_default"] for version, said in self.knowledge.resource_api.items()}


def minors() -> tuple[str, ...]:
    """The Kubernetes minors that are locked, newest first; the first is the default."""
    found = (re.fullmatch(r"1\.(\d+)", path.stem) for path in folders.data("versions").glob("1.*.yaml"))
    return tuple(f"1.{number}" for number in sorted((int(match[1]) for match in found if match), reverse=True))


def peers() -> Lock:
    """The drivers of others that `bench driver` is measured beside. No testbed needs them, so no Kubernetes minor has them."""
    said = _read("peers.yaml")
    minor = said.pop("kubernetes")
    return _locked(
        minor, said, {name: {"version": recipe.pop("version"), "module": name} for name, recipe in said.items()}
    )


def lock_for(version: str) -> Lock:
    """The lock of a minor ("1.37") or of exactly the patch that is locked ("1.37.1")."""
    wanted = version.removeprefix("v")
    minor = ".".join(wanted.split(".")[:2])
    if minor not in minors():
        raise UsageError(f"Kubernetes {version} is not locked here", hint=f"one of {', '.join(minors())}")
    lock = _lock(minor)
    if wanted not in (minor, lock.kubernetes):
        raise UsageError(
            f"Kubernetes {version} is not locked here",
            hint=f"{lock.kubernetes} is; your own build of another: --kubernetes {minor} --binaries-from FOLDER",
        )
    return lock


def _lock(minor: str) -> Lock:
    pins = _read(f"{minor}.yaml")
    image = pins.pop("node_image")
    return _locked(minor, _read("upstreams.yaml"), pins, image)


def _locked(minor: str, upstreams: dict[str, Any], pins: dict[str, Any], node_image: str = "") -> Lock:
    programs: dict[str, Program] = {}
    try:
        for name, recipe in upstreams.items():
            members = recipe.pop("programs")
            upstream = Upstream.model_validate(
                {"name": name, "minor": minor, "sha256": {}, "package": None} | recipe | pins[name]
            )
            for program, facts in members.items():
                made = {"name": program, "file": program, "upstream": upstream} | facts
                programs[program] = Program.model_validate(made)
    except (KeyError, ValueError) as broken:
        raise TestbedError(
            f"the lock of Kubernetes {minor} is damaged: {broken}", hint="install dra-testbed again"
        ) from broken
    kubernetes = programs["kubelet"].version if "kubelet" in programs else minor
    return Lock(minor=minor, kubernetes=kubernetes, node_image=node_image, programs=programs)


def _read(name: str) -> dict[str, Any]:
    path = folders.data("versions") / name
    try:
        content = yaml.load(path.read_text(), _Loader)  # noqa: S506 - both loaders are the safe ones
    except (OSError, yaml.YAMLError) as broken:
        raise TestbedError(f"cannot read {path}: {broken}", hint="install dra-testbed again") from broken
    assert isinstance(content, dict)  # noqa: S101 - our own data, and a test reads every file
    return content
