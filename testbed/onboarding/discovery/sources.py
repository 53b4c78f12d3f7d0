"""What `driver init --from` names: manifests, a kustomization or a chart, as the section `install` of a driver file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_ARCHIVES = (".tgz", ".tar.gz")
_DOCUMENTS = (".yaml", ".yml", ".json", ".tar", ".tgz", ".gz")


@dataclass(frozen=True)
class Source:
    """How a driver is installed: the section `install` of a driver file, with absolute paths, and a name for the driver file."""

    name: str
    install: dict[str, Any] = field(hash=False)

    @property
    def is_chart(self) -> bool:
        """Return True if the driver is installed by a Helm chart, which has a namespace of its own."""
        return "chart" in self.install

    @property
    def is_process(self) -> bool:
        """Return True if the driver is a program that the testbed starts on each node."""
        return "process" in self.install

    @property
    def installs(self) -> bool:
        """Return True unless the driver is installed already."""
        return "installed" not in self.install

    def relative_to(self, folder: Path) -> dict[str, Any]:
        """Return the section with paths relative to a folder."""
        found: dict[str, Any] = _relative(self.install, folder.absolute())
        return found


UNKNOWN = "unknown.example"  # the name of a driver before it has published devices
INSTALLED = Source("driver", {"installed": True})


def find_source(
    paths: Sequence[Path], values: Path | None, images: Sequence[Path], extra: Sequence[Path], name: str = ""
) -> Source:
    """Return the source that the paths name. `extra` are manifests that are installed before it. Raise UsageError if they do not fit."""
    if not paths:
        return replace(INSTALLED, name=_label(name) or INSTALLED.name)
    section = _section(paths, values)
    before = [each.absolute() for each in extra]
    if before:
        section["manifests"] = [*before, *section.get("manifests", [])]
    if images:
        section["images"] = [each.absolute() for each in images]
    return Source(_label(name) or _name_of(paths[0]), section)


def split_command(text: str) -> list[str]:
    """Return the words of a command as a shell does, where a template variable is a part of a word. Raise ValueError for open quotes."""
    return shlex.split(re.sub(r"\{\{\s*(\w+)\s*\}\}", r"{{\1}}", text))


def process_source(command: Sequence[str], extra: Sequence[Path], name: str = "") -> Source:
    """Return the source for a command that is the driver. A program that is a file here is copied to the nodes."""
    program = Path(command[0])
    words: list[Any] = [program.absolute() if program.is_file() else command[0], *command[1:]]
    section: dict[str, Any] = {"process": {"command": words}}
    if extra:
        section["manifests"] = [each.absolute() for each in extra]
    return Source(_label(name) or _label(program.name.partition(".")[0]) or "driver", section)


def provisional(
    source: Source, *, driver: str = UNKNOWN, namespace: str = "", device_class: str = UNKNOWN
) -> DriverFile:
    """Return a driver file with which the driver can be installed and used before more is known about it."""
    home = namespace or (source.name if source.is_chart else "default")
    pods = {"namespace": home, "selector": f"app={source.name}", "container": "driver"}
    spec = {
        "driver": driver,
        "install": source.relative_to(Path.cwd()),
        **({} if source.is_process else {"pods": pods}),
        "devices": {"classes": [device_class]},
        "probe": {"env": "^(?P<name>unknown)$"},
    }
    content = {
        "apiVersion": "dra-testbed/v1alpha1",
        "kind": "DriverFile",
        "metadata": {"name": source.name},
        "spec": spec,
    }
    return DriverFile.model_validate_json(json.dumps(content), context={"folder": Path.cwd()})


def _section(paths: Sequence[Path], values: Path | None) -> dict[str, Any]:
    path = paths[0].absolute()
    is_chart = (path / "Chart.yaml").is_file() or path.name.endswith(_ARCHIVES)
    is_kustomization = any((path / each).is_file() for each in _KUSTOMIZATIONS)
    if values and not is_chart:
        raise UsageError(f"--values {values} is for a chart, which --from {path} is not", hint="leave --values out")
    if len(paths) > 1 and (is_chart or is_kustomization):
        raise UsageError(
            f"--from {path} is complete, so no other --from can be added", hint="add manifests with --companion"
        )
    if is_chart:
        return {"chart": {"path": path, **({"values": values.absolute()} if values else {})}}
    if is_kustomization:
        return {"kustomize": path}
    return {"manifests": [each.absolute() for each in paths]}


def _name_of(path: Path) -> str:
    """Return a name after a file or folder; after the project for a folder with a name such as `deploy`."""
    generic = (
        "install",
        "manifests",
        "deploy",
        "deployments",
        "base",
        "driver",
        "helm",
        "kustomize",
        "rendered",
        "default",
    )
    parts = [path.absolute().name.partition(".")[0], *(each.name for each in path.absolute().parents)]
    names = (_label(each.partition("@")[0]) for each in parts)
    return next((each for each in names if each and each not in generic), "driver")


def _label(text: str) -> str:
    """Return a text as the name of a driver file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:63].strip("-")


def _relative(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {key: _relative(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [_relative(each, folder) for each in value]
    if not isinstance(value, Path):
        return value
    found = os.path.relpath(value, folder)
    return (
        found if "/" in found or value.suffix in _DOCUMENTS else f"./{found}"
    )  # a program without a folder is searched on PATH
