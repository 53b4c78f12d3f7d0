"""What kind's base image adds to an ordinary Debian, taken from kind's Go module and done as its Dockerfile says. For assemble.py.

The module comes from wherever the go command gets modules, and is checked against the go.sum that is committed here.
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
    """The folder images/base of kind's module."""

    base: Path

    def members(self) -> Iterator[Member]:
        """The files, containerd's configuration as we need it, and the units enabled and masked."""
        files = self.base / "files"
        for path in sorted(files.rglob("*")):
            place = str(path.relative_to(files))
            if path.is_file() and place != _CONTAINERD:
                yield tarball.file(place, path, 0o755 if path.parent.name == "bin" else 0o644)
        yield tarball.file(_CONTAINERD, self.containerd_configuration())
        yield from (tarball.folder(place) for place in _FOLDERS)
        for word, unit in re.findall(r"systemctl (enable|mask) (\S+)", (self.base / "Dockerfile").read_text()):
            if word == "mask":
                yield tarball.link(f"{_SYSTEMD}/{unit}", "/dev/null")
            else:
                yield from enable_links(unit, (files / _SYSTEMD / unit).read_text())

    def sandbox_image(self) -> str:
        """The image that containerd starts every pod with."""
        return str(_cri(self.containerd_configuration())["sandbox_image"])

    def containerd_configuration(self) -> str:
        """kind's, with CDI and NRI on in so many words, and no OOM score below containerd's own.

        The latter is for hosts whose root may not lower a score: there every container would fail. Elsewhere it changes
        nothing, because kind's unit gives containerd -999, and the kubelet asks for no less than that.
        """
        said = (self.base / "files" / _CONTAINERD).read_text()
        with_cdi = re.sub(
            r"^( *)restrict_oom_score_adj = false$",
            r"\1restrict_oom_score_adj = true\n\1enable_cdi = true\n\1"
            r'cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]',
            said,
            flags=re.MULTILINE,
        )
        text = f'{with_cdi.rstrip()}\n\n[plugins."io.containerd.nri.v1.nri"]\n  disable = false\n'
        if not (_cri(text).get("enable_cdi") and _cri(text).get("restrict_oom_score_adj")):
            raise TestbedError(f"kind's {_CONTAINERD} is not as it was when this was written: {self.base}")
        return text


def fetch(lock: Lock, scratch: Path, step: Step) -> KindFiles:
    """The files of the locked kind."""
    upstream = lock.program("kind").upstream
    step.note(f"files of kind {upstream.version}")
    module = scratch / "kind-module"
    shutil.copytree(upstream.module_folder, module)
    own = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "GO111MODULE": "on"}
    try:
        go = find_go(upstream.module_folder, Programs(), step)
        said = process.run(
            [go.path, "mod", "download", "-json", _MODULE],
            env={"HOME": str(Path.home()), **os.environ, **own}, cwd=module, timeout=300,
        ).stdout  # fmt: skip
    except (Unavailable, CommandFailed) as failed:
        raise TestbedError(
            f"kind's own files come from its Go module, and that cannot be had: {_reason(failed)}",
            hint=getattr(failed, "cure", "") or "let the go command reach a module proxy (GOPROXY)",
        ) from failed
    return KindFiles(Path(json.loads(said)["Dir"]) / "images/base")


def enable_links(name: str, text: str) -> Iterator[Member]:
    """The links that `systemctl enable` makes for a unit with this text."""
    for target in re.findall(r"^WantedBy=(\S+)$", text, re.MULTILINE):
        yield tarball.link(f"{_SYSTEMD}/{target}.wants/{name}", f"/{_SYSTEMD}/{name}")


def base_spec(ctr: Path) -> bytes:
    """/etc/containerd/cri-base.json, what every container starts from: containerd's default, kind's hook, no limits on resources."""
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
    try:  # with -json it says errors there
        return str(json.loads(failed.output)["Error"])
    except (ValueError, KeyError, TypeError):
        return next(iter(failed.output.strip().splitlines()[-1:]), failed.status)
