"""The catalogue: every requirement that the suites hold, found by importing them. For `list`, `explain`, the plugin and the docs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from testbed.conformance.requirement import Requirement, requirement_of
from testbed.errors import TestbedError, UsageError, did_you_mean


@dataclass(frozen=True)
class Entry:
    """A requirement and the test that checks it."""

    requirement: Requirement
    path: Path
    function: str
    source: str

    @property
    def manifests(self) -> tuple[str, ...]:
        """The manifests that the test uses, as it names them: in its body, or in its parameters."""
        constants = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Constant)]
        texts = [str(each.value) for each in sorted(constants, key=lambda each: (each.lineno, each.col_offset))]
        return tuple(dict.fromkeys(text for text in texts if text.endswith(".yaml")))


@dataclass(frozen=True)
class Catalogue:
    """All requirements, by their ids."""

    entries: tuple[Entry, ...]

    @property
    def digest(self) -> str:
        """Changes with every word that is required, and with nothing else."""
        content = json.dumps([asdict(entry.requirement) for entry in self.entries], sort_keys=True)
        return "sha256:" + hashlib.sha256(content.encode()).hexdigest()

    def get(self, wanted: str) -> Entry:
        """The entry with that id."""
        for entry in self.entries:
            if entry.requirement.id == wanted.upper():
                return entry
        known = [entry.requirement.id for entry in self.entries]
        raise UsageError(
            f"there is no requirement {wanted}", hint=did_you_mean(wanted.upper(), known) or "dra-testbed list"
        )

    def at(self, path: Path, function: str) -> Entry | None:
        """The entry that a test function checks."""
        return next((e for e in self.entries if e.path == path and e.function == function), None)


def read(places: Iterable[Path]) -> Catalogue:
    """The catalogue of these files and folders. Two requirements with one id are an error."""
    entries = sorted(
        (entry for path in _files(places) for entry in _entries(path)), key=lambda entry: entry.requirement.id
    )
    for one, other in itertools.pairwise(entries):
        if one.requirement.id == other.requirement.id:
            raise UsageError(
                f"{one.requirement.id} is there twice: {one.path}::{one.function} and {other.path}::{other.function}",
                hint="an id belongs to one test for ever: take the next free number",
            )
    return Catalogue(tuple(entries))


def _files(places: Iterable[Path]) -> list[Path]:
    found = {file.resolve() for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
    return sorted(found)


def _entries(path: Path) -> list[Entry]:
    found = []
    for name, member in vars(_module(path)).items():
        requirement = requirement_of(member)
        if requirement and name.startswith("test"):
            found.append(Entry(requirement, path, name, inspect.getsource(member)))
    return found


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dra_testbed_catalogue.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise TestbedError(f"{path} cannot be imported", hint="suites are Python files")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as broken:
        raise TestbedError(f"{path} cannot be imported: {broken!r}", hint=f"python {path} shows where") from broken
    return module
