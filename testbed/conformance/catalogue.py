"""The catalogue: every requirement that the suites hold, found by importing them. For `list`, `explain`, the plugin and the docs."""

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

# A suite's list of requirements that have no test yet: PLANNED, a tuple of them.
_PLANNED = "requirements.py"
# Lies in the top folder of our suites and nowhere else, in a checkout as in a wheel.
_TOP = "upstream.yaml"


@dataclass(frozen=True)
class Entry:
    """A requirement and the test that checks it. One that is only planned has no function, and the path of the list that it is on."""

    requirement: Requirement
    path: Path
    function: str
    source: str
    cases: int = 1

    @property
    def test(self) -> str:
        """Where its test is, as pytest writes it; '' as long as there is none."""
        return f"{self.path}::{self.function}" if self.function else ""

    @property
    def manifests(self) -> tuple[str, ...]:
        """The manifests that the test uses, as it names them: in its body, or in its parameters."""
        constants = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Constant)]
        texts = [str(each.value) for each in sorted(constants, key=lambda each: (each.lineno, each.col_offset))]
        return tuple(dict.fromkeys(text for text in texts if text.endswith(".yaml")))


@dataclass(frozen=True)
class Catalogue:
    """All requirements, by their ids. `entries` have tests and are judged; `planned` are written down, and nobody is judged by them."""

    entries: tuple[Entry, ...]
    planned: tuple[Entry, ...] = field(default=())

    @property
    def every(self) -> tuple[Entry, ...]:
        """With and without a test."""
        return tuple(sorted((*self.entries, *self.planned), key=_by_id))

    @property
    def digest(self) -> str:
        """Changes with every word that is required, and with nothing else."""
        content = json.dumps([asdict(entry.requirement) for entry in self.entries], sort_keys=True)
        return "sha256:" + hashlib.sha256(content.encode()).hexdigest()

    def get(self, wanted: str) -> Entry:
        """The entry with that id."""
        for entry in self.every:
            if entry.requirement.id == wanted.upper():
                return entry
        known = [entry.requirement.id for entry in self.every]
        raise UsageError(
            f"there is no requirement {wanted}", hint=did_you_mean(wanted.upper(), known) or "dra-testbed list"
        )

    def at(self, path: Path, function: str) -> Entry | None:
        """The entry that a test function checks."""
        return next((e for e in self.entries if e.path == path and e.function == function), None)


def read(places: Iterable[Path]) -> Catalogue:
    """The catalogue of these files and folders. Two requirements with one id are an error."""
    places = list(places)
    entries = (entry for path in _files(places, "test_*.py") for entry in _entries(path))
    lists = (path for path in _files(places, _PLANNED) if path.name == _PLANNED)
    planned = (Entry(each, path, "", "") for path in lists for each in _module(path).PLANNED)
    made = Catalogue(tuple(sorted(entries, key=_by_id)), tuple(sorted(planned, key=_by_id)))
    for one, other in itertools.pairwise(made.every):
        if one.requirement.id == other.requirement.id:
            raise UsageError(
                f"{one.requirement.id} is there twice: {one.test or one.path} and {other.test or other.path}",
                hint="an id belongs to one test for ever: take the next free number",
            )
    return made


def top(place: Path) -> Path | None:
    """The whole suites that a file or folder is a part of, wherever they lie; None for what somebody else has written."""
    place = place.resolve()
    return next((folder for folder in (place, *place.parents) if (folder / _TOP).is_file()), None)


def _by_id(entry: Entry) -> str:
    return entry.requirement.id


def _files(places: Iterable[Path], pattern: str) -> list[Path]:
    found = {file.resolve() for place in places for file in ([place] if place.is_file() else place.rglob(pattern))}
    return sorted(found)


def _entries(path: Path) -> list[Entry]:
    found = []
    module, written = _module(path), _written(path)
    for name, member in vars(module).items():
        requirement = requirement_of(member)
        if requirement and name.startswith("test"):
            source = written.get(name) or textwrap.dedent(inspect.getsource(member))
            found.append(Entry(requirement, path, name, source, _cases(member)))
    return found


def _written(path: Path) -> dict[str, str]:
    """Each function that begins a line of a file, as it stands there, with its decorators."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")  # as Python counts them; for splitlines() a form feed in a comment ends a line, too
    found = {}
    for each in ast.parse(text).body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
            found[each.name] = "\n".join(lines[first - 1 : each.end_lineno]) + "\n"
    return found


def _cases(function: object) -> int:
    """How many cases its parameters make of it, where their values are a list."""
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
