"""The files that kind's base image adds to Debian, from kind's Go module and by the rules of its Dockerfile. Used by assemble.py.

The go command downloads the module and checks it against the go.sum of the locked kind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import process
from testbed.binaries.cache import BinaryCache as Programs
from testbed.binaries.lock import Lock
from testbed.binaries.sources import Unavailable
from testbed.binaries.toolchain import find_go
from testbed.errors import CommandFailed, TestbedError
from testbed.images import tarball
from testbed.images.tarball import Member
from testbed.progress import Step

_MODULE = "sigs.k8s.io/kind"
_SYSTEMD = "etc/systemd/system"
_CONTAINERD = "etc/containerd/config.toml"
_CRI = "io.containerd.grpc.v1.cri"
_FOLDERS = ("etc/kubernetes/manifests", "etc/cdi")


@dataclass(frozen=True)
class KindFiles:
    """The files in the folder images/base of kind's Go module."""

    base: Path

    def members(self) -> Iterator[Member]:
        """Yield kind's files, our configuration of containerd, and the links of enabled and masked systemd units."""
        files = self.base / "files"
        for path in sorted(files.rglob("*")):
            target = str(path.relative_to(files))
            if path.is_file() and target != _CONTAINERD:
                yield tarball.file(target, path, 0o755 if path.parent.name == "bin" else 0o644)
        yield tarball.file(_CONTAINERD, self.containerd_configuration())
        yield from (tarball.folder(folder) for folder in _FOLDERS)
        for verb, unit in re.findall(r"systemctl (enable|mask) (\S+)", (self.base / "Dockerfile").read_text()):
            if verb == "mask":
                yield tarball.link(f"{_SYSTEMD}/{unit}", "/dev/null")
            else:
                yield from enable_links(unit, (files / _SYSTEMD / unit).read_text())

    def sandbox_image(self) -> str:
        """Return the name of the sandbox image in containerd's configuration."""
        return str(_cri(self.containerd_configuration())["sandbox_image"])

    def containerd_configuration(self) -> str:
        """Return kind's configuration with CDI and NRI enabled explicitly, and with restrict_oom_score_adj.

        On hosts where root may not lower an OOM score, every container would fail without restrict_oom_score_adj. On other hosts
        it changes nothing: kind's unit runs containerd with -999, and the kubelet never asks for less.
        """
        original = (self.base / "files" / _CONTAINERD).read_text()
        with_cdi = re.sub(
            r"^( *)restrict_oom_score_adj = false$",
            r"\1restrict_oom_score_adj = true\n\1enable_cdi = true\n\1"
            r'cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]',
            original,
            flags=re.MULTILINE,
        )
        text = f'{with_cdi.rstrip()}\n\n[plugins."io.containerd.nri.v1.nri"]\n  disable = false\n'
        if not (_cri(text).get("enable_cdi") and _cri(text).get("restrict_oom_score_adj")):
            raise TestbedError(
                f"cannot enable CDI in {self.base}/files/{_CONTAINERD}: the file of this kind version has an unexpected format",
                hint="give a node image with --node-image",
            )
        return text


def fetch(lock: Lock, scratch: Path, step: Step) -> KindFiles:
    """Download the Go module of the locked kind, and return its files."""
    upstream = lock.program("kind").upstream
    step.note(f"files of kind {upstream.version}")
    module = scratch / "kind-module"
    shutil.copytree(upstream.module_folder, module)
    own = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "GO111MODULE": "on"}
    try:
        go = find_go(upstream.module_folder, Programs(), step)
        output = process.run(
            [go.path, "mod", "download", "-json", _MODULE],
            env={"HOME": str(Path.home()), **os.environ, **own}, cwd=module, timeout=300,
        ).stdout  # fmt: skip
    except (Unavailable, CommandFailed) as failed:
        raise TestbedError(
            f"cannot download the Go module {_MODULE}, which has the files of kind's node image: {_reason(failed)}",
            hint=failed.hint or "check that the go command can reach a module proxy (GOPROXY)",
        ) from failed
    return KindFiles(Path(json.loads(output)["Dir"]) / "images/base")


def enable_links(name: str, text: str) -> Iterator[Member]:
    """Yield the links that `systemctl enable` creates for a unit with this text."""
    for target in re.findall(r"^WantedBy=(\S+)$", text, re.MULTILINE):
        yield tarball.link(f"{_SYSTEMD}/{target}.wants/{name}", f"/{_SYSTEMD}/{name}")


def base_spec(ctr: Path) -> bytes:
    """Return /etc/containerd/cri-base.json, the base of every container spec: containerd's default, kind's hook, no rlimits."""
    spec = json.loads(process.run([ctr, "oci", "spec"]).stdout)
    spec["process"].pop("rlimits", None)
    hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
    hooks.append({"path": "/kind/bin/mount-product-files.sh"})
    return json.dumps(spec, indent=1).encode()


def _cri(configuration: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(configuration)["plugins"][_CRI]
    return found


def _reason(failed: Unavailable | CommandFailed) -> str:
    if isinstance(failed, Unavailable):
        return str(failed)
    try:  # with -json, go writes its error to stdout
        return str(json.loads(failed.output)["Error"])
    except (ValueError, KeyError, TypeError):
        return next(iter(failed.output.strip().splitlines()[-1:]), failed.status)
