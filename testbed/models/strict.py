"""Strict models, and how a file becomes one: all problems at once, each with its file, line and path, and a near match for a typing error.

`config` and `driver_file` are built on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from testbed.errors import UsageError
from testbed.models import document
from testbed.models.document import Document, Location, Problem, format_location
from testbed.models.validation_messages import describe_value, message_for

API_VERSION: Final = "dra-testbed/v1alpha1"
M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """The manners of every model: camelCase in files, no unknown keys, no silent conversions, no changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


class Published(Strict):
    """A part of what we print or write; our code fills it in by the names of its fields."""

    model_config = ConfigDict(populate_by_name=True)


def load(path: Path, model: type[M]) -> M:
    """Read a file of that kind; UsageError names everything that is wrong with it."""
    return check(document.read(path), model)


def check(source: Document, model: type[M]) -> M:
    """The document as a model. Files that it names are looked for beside it."""
    made, found = _validated(source, model)
    broken = {problem.path for problem in source.problems}
    problems = [*source.problems, *(problem for problem in found if problem.path not in broken)]
    if problems or made is None:
        raise file_error(source.path, problems)
    return made


def require_kind(path: Path, kind: str) -> None:
    """Raise UsageError if a file is not of this kind; what else is in it isn't checked."""
    content = document.read(path).content
    if not isinstance(content, dict) or (content.get("apiVersion"), content.get("kind")) != (API_VERSION, kind):
        raise UsageError(f"{path} is not of kind {kind}", hint=f"it needs apiVersion: {API_VERSION} and kind: {kind}")


def check_flags(given: Mapping[str, Any], model: type[M], places: Mapping[str, tuple[str, str]] | None = None) -> M:
    """The same checks for values from the command line: the problems name `--flags`. `places` says which flags fill a section."""
    names: dict[Location, str] = {place: flag for flag, place in (places or {}).items()}
    try:
        return model.model_validate_json(json.dumps(given, default=str), context={"folder": Path.cwd()})
    except ValidationError as refused:
        lines = [f"{_flag(error['loc'], names)}: {message_for(error, model)}" for error in refused.errors()]
        raise UsageError("\n".join(lines)) from refused


def file_error(path: Path, problems: list[Problem]) -> UsageError:
    """The one error that says all problems of a file."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    lines = [f"{path}:{each.line}: {each.path or 'the document'}: {each.what}" for each in ordered]
    if len(lines) == 1:
        return UsageError(lines[0])
    return UsageError("\n  ".join([f"{path} has {len(lines)} problems:", *lines]))


def existing_file(path: Path, info: ValidationInfo) -> Path:
    """For validators: the path as seen from the file that names it, which must be there."""
    if info.context is None:
        return path
    found = (Path(info.context["folder"]) / path.expanduser()).resolve()
    if found.is_dir():
        raise ValueError(f"{found} is a directory, but must be a file")
    if not found.is_file():
        raise ValueError(f"there is no file {found}")
    return found


def _validated(source: Document, model: type[M]) -> tuple[M | None, list[Problem]]:
    if not isinstance(source.content, dict):
        return None, [Problem(source.line(()), "", f"is {describe_value(source.content)}, but must be a mapping")]
    context = {"folder": source.path.absolute().parent}
    try:
        return model.model_validate_json(json.dumps(source.content), context=context), []
    except ValidationError as refused:
        errors = [error for error in refused.errors() if not _is_short_by_bad_items(error)]
    # What is of another kind is not judged by the rules of this one.
    foreign = [error for error in errors if error["loc"] == ("kind",)]
    return None, [_problem(source, error, model) for error in foreign or errors]


def _is_short_by_bad_items(error: ErrorDetails) -> bool:
    """A list is counted without its bad items, which have problems of their own."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _problem(source: Document, error: ErrorDetails, model: type[BaseModel]) -> Problem:
    place = tuple(part for part in error["loc"] if part != "[key]")
    return Problem(source.line(place), format_location(place), message_for(error, model, source.written.get(place)))


def _flag(loc: Location, names: Mapping[Location, str]) -> str:
    if loc[:2] in names:
        return "--" + names[loc[:2]].replace("_", "-")
    flag = "--" + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in str(loc[0]))
    keys = (part for part in loc[1:] if isinstance(part, str) and part != "[key]")
    return " ".join([_FLAGS.get(flag, flag), *keys])


# Repeatable flags are singular, the keys that they fill are not.
_FLAGS = {"--feature-gates": "--feature-gate", "--tiers": "--tier"}
