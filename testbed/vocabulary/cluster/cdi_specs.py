"""The content of CDI spec files: what each defines for which CDI ID, and how two states of a node differ. Pure; for Kubelets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml


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


def _parsed(text: str) -> Any:
    """Parse JSON, which may contain tabs, or other YAML."""
    with contextlib.suppress(ValueError):
        return json.loads(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise Unreadable(f"it is neither JSON nor YAML: {wrong}") from wrong
