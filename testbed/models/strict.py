"""The base class of all models, and reading a file into one: all mistakes are reported at once, each with file, line, key and a suggestion.

`config` and `driver_file` are built on it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from testbed.errors import UsageError
from testbed.models import document
from testbed.models.document import Document, Location, Problem, format_location
from testbed.models.validation_messages import UNKNOWN_KEY, describe_value, message_for

API_VERSION: Final = "dra-testbed/v1alpha1"
M = TypeVar("M", bound=BaseModel)
_NO_SUCH_FILE = "no such file: "
_SHOWN_FILES = 2
_SIMILAR = 0.6


class Strict(BaseModel):
    """Base class of all models: camelCase keys in files, no unknown keys, no implicit conversions, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)


class Published(Strict):
    """Base class of models that dra-testbed prints or writes; our code creates them by field names."""

    model_config = ConfigDict(populate_by_name=True)


def load(path: Path, model: type[M]) -> M:
    """Read a file into a model. Raise UsageError with all mistakes in the file."""
    return check(document.read(path), model)


def check(source: Document, model: type[M]) -> M:
    """Return the document as a model, with paths relative to its folder. Raise UsageError with all mistakes."""
    result, problems = find_problems(source, model)
    if problems or result is None:
        raise file_error(source.path, problems)
    return result


def find_problems(source: Document, model: type[M]) -> tuple[M | None, list[Problem]]:
    """Return the document as a model, None if it is not valid, with all mistakes."""
    result, found = _validated(source, model)
    # An empty value of an unknown key is reported only as unknown; all other values with a problem are not validated.
    unknown = {problem.path for problem in found if problem.what.startswith(UNKNOWN_KEY)}
    broken = {problem.path for problem in source.problems} - unknown
    problems = [problem for problem in source.problems if problem.path not in unknown]
    problems += [problem for problem in found if problem.path not in broken]
    return result, problems


def require_kind(path: Path, kind: str) -> None:
    """Raise UsageError if a file is not of this kind; nothing else in it is checked."""
    content = document.read(path).content
    if not isinstance(content, dict) or (content.get("apiVersion"), content.get("kind")) != (API_VERSION, kind):
        raise UsageError(f"{path} is not of kind {kind}", hint=f"it needs apiVersion: {API_VERSION} and kind: {kind}")


def check_flags(
    given: Mapping[str, Any], model: type[M], section_flags: Mapping[str, tuple[str, str]] | None = None
) -> M:
    """Check values of the command line against a model. Messages name the flags; `section_flags` maps flags to their section and key."""
    names: dict[Location, str] = {location: flag for flag, location in (section_flags or {}).items()}
    try:
        return model.model_validate_json(json.dumps(given, default=str), context={"folder": Path.cwd()})
    except ValidationError as refused:
        lines = [f"{_flag(error['loc'], names)}: {message_for(error, model)}" for error in refused.errors()]
        raise UsageError("\n".join(lines)) from refused


def file_error(path: Path, problems: list[Problem]) -> UsageError:
    """Return one error with all problems of a file, in the order of its lines; missing files are one line at the end."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    missing = [each for each in ordered if each.what.startswith(_NO_SUCH_FILE)]
    own = [each for each in ordered if each not in missing]
    lines = [f"{path}:{each.line}: {each.path or 'document'}: {each.what}" for each in own]
    lines += [f"{path}:{missing[0].line}: {_describe_missing(path, missing)}"] if missing else []
    if len(lines) == 1:
        return UsageError(lines[0])
    return UsageError("\n  ".join([f"{path} has {len(lines)} problems:", *lines]))


def _describe_missing(path: Path, missing: Sequence[Problem]) -> str:
    """Describe the files that a file names and that do not exist. Several are probably missing because it was copied alone."""
    if len(missing) == 1:
        return f"{missing[0].path}: {missing[0].what}"
    names = [each.what.removeprefix(_NO_SUCH_FILE) for each in missing]
    more = f" and {len(names) - _SHOWN_FILES} more" if names[_SHOWN_FILES:] else ""
    shown = f"{', '.join(names[:_SHOWN_FILES])}{more}"
    return f"{len(names)} files do not exist: {shown}; paths are relative to {path.absolute().parent}"


def existing_file(path: Path, info: ValidationInfo) -> Path:
    """Return a path as seen from the file that names it; for validators. Raise ValueError if the file does not exist."""
    if info.context is None:
        return path
    found = _as_seen_from_the_file(path, info.context)
    if found.is_dir():
        raise ValueError(f"{found} is a folder, but must be a file")
    return existing_path(path, info)


def existing_path(path: Path, info: ValidationInfo) -> Path:
    """Return the path of a file or folder like `existing_file`. Raise ValueError if it does not exist."""
    if info.context is None:
        return path
    found = _as_seen_from_the_file(path, info.context)
    if not found.is_file() and not found.is_dir():
        raise ValueError(f"{_NO_SUCH_FILE}{found}")
    return found


def _as_seen_from_the_file(path: Path, context: Mapping[str, Any]) -> Path:
    return (Path(context["folder"]) / path.expanduser()).resolve()


def _validated(source: Document, model: type[M]) -> tuple[M | None, list[Problem]]:
    if not isinstance(source.content, dict):
        # The text of a file that is no driver file, such as one with a password, must not be in the message.
        what = "text" if isinstance(source.content, str) else describe_value(source.content)
        return None, [Problem(source.line(()), "", f"is {what}, but must be a mapping")]
    context = {"folder": source.path.absolute().parent}
    try:
        return model.model_validate_json(json.dumps(source.content), context=context), []
    except ValidationError as refused:
        errors = [error for error in refused.errors() if not _is_short_by_bad_items(error)]
    errors = [error for error in errors if not _is_misspelt(error, errors)]
    # Rules of this kind mean nothing for a file of another one.
    wrong_kind = [error for error in errors if error["loc"] == ("kind",)]
    return None, [_problem(source, error, model) for error in wrong_kind or errors]


def _is_short_by_bad_items(error: ErrorDetails) -> bool:
    """Return True if a list is too short only because pydantic left out its invalid items, which are reported anyway."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _is_misspelt(missing: ErrorDetails, errors: Sequence[ErrorDetails]) -> bool:
    """Return True if a key is missing because it is misspelt, which the problem of the unknown key says."""
    *parent, key = missing["loc"]
    unknown = [
        str(each["loc"][-1]) for each in errors if each["type"] == "extra_forbidden" and [*each["loc"][:-1]] == parent
    ]
    return missing["type"] == "missing" and bool(difflib.get_close_matches(str(key), unknown, n=1, cutoff=_SIMILAR))


def _problem(source: Document, error: ErrorDetails, model: type[BaseModel]) -> Problem:
    location = tuple(part for part in error["loc"] if part != "[key]")
    message = message_for(error, model, source.written.get(location))
    return Problem(source.line(location), format_location(location), message)


def _flag(loc: Location, names: Mapping[Location, str]) -> str:
    if loc[:2] in names:
        return "--" + names[loc[:2]].replace("_", "-")
    flag = "--" + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in str(loc[0]))
    keys = (part for part in loc[1:] if isinstance(part, str) and part != "[key]")
    return " ".join([_FLAGS.get(flag, flag), *keys])


# Names of repeatable flags are singular, the keys that they fill are plural.
_FLAGS = {"--feature-gates": "--feature-gate", "--tiers": "--tier"}
