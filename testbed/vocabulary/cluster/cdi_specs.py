"""The content of CDI spec files: what each defines for which CDI ID, and how two states of a node differ. Pure; for Kubelets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml


class _WithoutAliases(yaml.SafeLoader):
    """Loads YAML without aliases: with them, a driver could write a short file that is huge as JSON."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node. Raise YAMLError if it is an alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias")
        return super().compose_node(parent, index)


class Unreadable(Exception):
    """A CDI file that no container runtime can read; its text is the reason."""


@dataclass(frozen=True, order=True)
class CdiEntry:
    """A part of a CDI file: the definition of an ID, or the file itself if `id` is ''. Messages do not show definitions."""

    path: str
    id: str
    definition: str

    def __str__(self) -> str:
        return f"{self.id} in {self.path}" if self.id else self.path


def entries(path: str, text: str) -> list[CdiEntry]:
    """Return an entry for the file and for each ID that it defines. An unreadable file has one entry with its whole text."""
    try:
        found = definitions(text)
    except Unreadable:
        return [CdiEntry(path, "", text)]
    return [CdiEntry(path, "", ""), *(CdiEntry(path, each, definition) for each, definition in found.items())]


def differences(before: Iterable[CdiEntry], now: Iterable[CdiEntry]) -> str:
    """Describe what was left behind, is missing or has another definition; '' if nothing has changed."""
    old, new = ({(each.path, each.id): each for each in some} for some in (before, now))
    found = {
        "left behind": [new[key] for key in new.keys() - old.keys()],
        "missing": [old[key] for key in old.keys() - new.keys()],
        "changed": [new[key] for key in new.keys() & old.keys() if new[key] != old[key]],
    }
    return "; ".join(f"{what}: {', '.join(map(str, sorted(which)))}" for what, which in found.items() if which)


def definitions(text: str) -> dict[str, str]:
    """Return the definition of each CDI ID in a file as text. Raise Unreadable if it is no CDI file."""
    spec = _parsed(text)
    try:
        kind, devices, common = spec["kind"], spec["devices"], spec.get("containerEdits")
        return {f"{kind}={each['name']}": json.dumps([each, common], sort_keys=True) for each in devices}
    except KeyError as missing:
        raise Unreadable(f"it lacks {missing}") from missing
    except (AttributeError, TypeError) as wrong:
        raise Unreadable(f"it does not match the CDI schema: {wrong}") from wrong


def edits(definition: str) -> tuple[set[str], set[str]]:
    """Return the variables (NAME=VALUE) and the paths of mounts and device nodes that a definition adds to containers."""
    device, common = json.loads(definition)
    parts = [part for part in (device.get("containerEdits"), common) if part]
    variables = {str(each) for part in parts for each in part.get("env") or ()}
    mounts = {str(each["containerPath"]) for part in parts for each in part.get("mounts") or ()}
    nodes = {str(each["path"]) for part in parts for each in part.get("deviceNodes") or ()}
    return variables, {path.rstrip("/") for path in mounts | nodes}


def explain_unresolvable(ids: Iterable[str], files: Mapping[str, str], node: str) -> str:
    """Explain with the CDI files on a node why a container runtime could not resolve some IDs. `files` are texts by path.

    A runtime uses no definition of an ID that two files of one folder define.
    """
    found = [(each, _defined_by(each, files)) for each in ids]
    conflicts = [_conflict(each, paths) for each, paths in found if _in_one_folder(paths)]
    if conflicts:
        return f"{conflicts[0]} on {node}, so the container runtime uses neither"
    missing = [each for each, paths in found if not paths]
    if missing:
        unread = [path for path, text in files.items() if _is_unreadable(text)]
        more = f"; {' and '.join(unread)} is unreadable" if unread else ""
        return f"no CDI file on {node} defines {missing[0]}, which the driver returned{more}"
    return "; ".join(
        f"{path} on {node} defines {each} now, but did not when the container was created"
        for each, paths in found[:1]
        for path in list(paths)[:1]
    )


def _defined_by(cdi_id: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the definitions of an ID by the paths of the files."""
    found: dict[str, str] = {}
    for path, text in files.items():
        with contextlib.suppress(Unreadable):
            defined = definitions(text)
            found |= {path: defined[cdi_id]} if cdi_id in defined else {}
    return found


def _in_one_folder(paths: Iterable[str]) -> bool:
    folders = [path.rpartition("/")[0] for path in paths]
    return len(folders) > len(set(folders))


def _conflict(cdi_id: str, found: Mapping[str, str]) -> str:
    how = "with different content" if len(set(found.values())) > 1 else "with the same content"
    return f"{len(found)} CDI files ({', '.join(found)}) define {cdi_id} {how}"


def _is_unreadable(text: str) -> bool:
    try:
        definitions(text)
    except Unreadable:
        return True
    return False


def _parsed(text: str) -> Any:
    """Parse JSON, which may contain tabs, or other YAML."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        return yaml.load(text, _WithoutAliases)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError) as wrong:
        raise Unreadable(f"it is neither JSON nor YAML: {wrong}") from wrong
