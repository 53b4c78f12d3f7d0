"""The catalogue: all requirements of the suites, found by importing them. For the CLI, the plugin, ci/ and the generated pages."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import itertools
import json
import math
import textwrap
from collections.abc import Iterable, Sized
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

from testbed.conformance.requirement import Requirement, requirement_of
from testbed.errors import TestbedError, UsageError, did_you_mean

# A suite lists its requirements without a test there, in the tuple PLANNED.
_PLANNED = "requirements.py"
# Only the root folder of the suites has this file, in a checkout and in a wheel.
_ONLY_IN_ROOT = "upstream.yaml"


@dataclass(frozen=True)
class Entry:
    """A requirement and the test that checks it. A planned requirement has no function, and the path of the list of planned ones."""

    requirement: Requirement
    path: Path
    function: str
    source: str
    cases: int = 1

    @property
    def test(self) -> str:
        """Return the test's ID as pytest writes it; '' if there is no test yet."""
        return f"{self.path}::{self.function}" if self.function else ""

    @property
    def manifests(self) -> tuple[str, ...]:
        """Return the manifests that the test names in its body or its parameters."""
        constants = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Constant)]
        texts = [str(each.value) for each in sorted(constants, key=lambda each: (each.lineno, each.col_offset))]
        return tuple(dict.fromkeys(text for text in texts if text.endswith(".yaml")))


@dataclass(frozen=True)
class Catalogue:
    """All requirements, sorted by ID. `entries` have tests; `planned` have none yet, and no run judges them."""

    entries: tuple[Entry, ...]
    planned: tuple[Entry, ...] = field(default=())

    @property
    def every(self) -> tuple[Entry, ...]:
        """Return all requirements, with and without a test."""
        return tuple(sorted((*self.entries, *self.planned), key=_by_id))

    @property
    def digest(self) -> str:
        """Return a digest that changes with every word of a requirement, and with nothing else."""
        content = json.dumps([asdict(entry.requirement) for entry in self.entries], sort_keys=True)
        return "sha256:" + hashlib.sha256(content.encode()).hexdigest()

    def get(self, wanted: str) -> Entry:
        """Return the entry with that ID. UsageError if there is none."""
        for entry in self.every:
            if entry.requirement.id == wanted.upper():
                return entry
        known = [entry.requirement.id for entry in self.every]
        raise UsageError(
            f"there is no requirement {wanted}", hint=did_you_mean(wanted.upper(), known) or "dra-testbed list"
        )

    def at(self, path: Path, function: str) -> Entry | None:
        """Return the entry that a test function checks, if any."""
        return next((e for e in self.entries if e.path == path and e.function == function), None)


def read(paths: Iterable[Path]) -> Catalogue:
    """Return the catalogue of these files and folders. UsageError if two requirements have the same ID."""
    paths = list(paths)
    entries = (entry for path in _files(paths, "test_*.py") for entry in _entries(path))
    lists = (path for path in _files(paths, _PLANNED) if path.name == _PLANNED)
    planned = (Entry(each, path, "", "") for path in lists for each in _module(path).PLANNED)
    made = Catalogue(tuple(sorted(entries, key=_by_id)), tuple(sorted(planned, key=_by_id)))
    for one, other in itertools.pairwise(made.every):
        if one.requirement.id == other.requirement.id:
            raise UsageError(
                f"{one.requirement.id} is used twice: by {one.test or one.path} and {other.test or other.path}",
                hint="an ID is never used again: take the next free number",
            )
    return made


def suites_root(path: Path) -> Path | None:
    """Return the root folder of the suites that a file or folder belongs to; None if it belongs to other tests."""
    path = path.resolve()
    return next((folder for folder in (path, *path.parents) if (folder / _ONLY_IN_ROOT).is_file()), None)


def _by_id(entry: Entry) -> str:
    return entry.requirement.id


def _files(paths: Iterable[Path], pattern: str) -> list[Path]:
    found = {file.resolve() for path in paths for file in ([path] if path.is_file() else path.rglob(pattern))}
    return sorted(found)


def _entries(path: Path) -> list[Entry]:
    found = []
    module, sources = _module(path), _sources(path)
    for name, member in vars(module).items():
        requirement = requirement_of(member)
        if requirement and name.startswith("test"):
            source = sources.get(name) or textwrap.dedent(inspect.getsource(member))
            found.append(Entry(requirement, path, name, source, _cases(member)))
    return found


def _sources(path: Path) -> dict[str, str]:
    """Return the source of each top-level function of a file, with its decorators, by name."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")  # lines as Python counts them: splitlines() also splits at a form feed in a comment
    found = {}
    for each in ast.parse(text).body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
            found[each.name] = "\n".join(lines[first - 1 : each.end_lineno]) + "\n"
    return found


def _cases(function: object) -> int:
    """Return the number of cases that the parameters of a test make, if their values have a length."""
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    values = [mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues") for mark in marks]
    return math.prod(len(each) for each in values if isinstance(each, Sized))


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
