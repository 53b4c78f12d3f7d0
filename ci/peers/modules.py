"""Copy files of the Go module of a peer, such as its manifests. The committed go.sum pins them, as it pins the sources of its program."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from testbed import process
from testbed.binaries.cache import BinaryCache
from testbed.binaries.lock import Program
from testbed.binaries.toolchain import find_go
from testbed.progress import Progress


def copy(program: Program, files: Mapping[str, Path], progress: Progress) -> None:
    """Copy files and folders of the module of a program. Those in Go's module cache are read-only, the copies are not."""
    home = folder(program, progress) if files else Path()
    for source, target in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if (home / source).is_dir():
            shutil.copytree(home / source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
        else:
            shutil.copyfile(home / source, target)
    for each in (each for target in files.values() for each in [target, *target.rglob("*")] if each.is_dir()):
        each.chmod(0o755)


def folder(program: Program, progress: Progress) -> Path:
    """Return the folder of the module of a program in Go's module cache. The go command downloads it if it is not there."""
    module = program.upstream.module_folder
    path = module_path(program)
    with progress.step(f"files of {path}") as step:
        go = find_go(module, BinaryCache(), step).path
        environment = {"HOME": str(Path.home()), **os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
        found = process.run([go, "mod", "download", "-json", path], cwd=module, env=environment, timeout=300).stdout
    return Path(json.loads(found)["Dir"])


def module_path(program: Program) -> str:
    """Return the module that contains the package of a program. Its lock file requires it."""
    requirements = (program.upstream.module_folder / "go.mod").read_text()
    return max((each for each in requirements.split() if program.package.startswith(f"{each}/")), key=len)
