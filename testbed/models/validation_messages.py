"""Messages for validation errors, written for the author of the file; `strict` adds file, line and key."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from testbed.errors import did_you_mean
from testbed.models.document import format_location

Context = Mapping[str, Any]
UNKNOWN_KEY = "is not a known key"
_MOST_SUGGESTIONS = 3
_LONGEST_VALUE = 80  # characters: a longer value may be a file that was named by mistake

_PATTERNS: dict[str, str] = {"^/": "be an absolute path"}
_BOUNDS: dict[str, Callable[[Context], str]] = {
    "greater_than": lambda context: f"be more than {context['gt']:g}",
    "greater_than_equal": lambda context: f"be {context['ge']} or more",
    "less_than_equal": lambda context: f"be {context['le']} or less",
    "string_too_short": lambda context: _at_least(context["min_length"], "characters"),
    "string_too_long": lambda context: f"have at most {context['max_length']} characters",
    "too_short": lambda context: _at_least(context["min_length"], "items"),
    "too_long": lambda context: f"have at most {context['max_length']} items",
    "string_pattern_mismatch": lambda context: _PATTERNS.get(
        context["pattern"], f"match the pattern {context['pattern']}"
    ),
}
_EXPECTED_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "path_type": "a path",
}


def message_for(error: ErrorDetails, model: type[BaseModel], written: str | None = None) -> str:
    """Return the message for one validation error; `written` is the value as the file spells it."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind in _BOUNDS:
        return f"is {_shown(value)}, but must {_BOUNDS[kind](context)}"
    if kind in _EXPECTED_TYPES:
        return _wrong_type(value, kind, written)
    match kind:
        case "extra_forbidden":
            return _unknown_key(error["loc"], model)
        case "literal_error" | "enum":
            return _not_one_of(value, context["expected"])
        case "missing":
            return "is missing"
    return str(context["error"]) if kind == "value_error" else f"is {_shown(value)}: {error['msg']}"


def describe_value(value: object, written: str | None = None) -> str:
    """Return a value with its type. `written` is the spelling in the file, if it is known."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    names = {int: "the number", float: "the number", str: "the string"}
    if type(value) in names:
        return f"{names[type(value)]} {_cut(written or repr(value))}"
    return "a mapping" if isinstance(value, dict) else "a list"


def _shown(value: object) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"


def _at_least(least: int, what: str) -> str:
    return "not be empty" if least == 1 else f"have at least {least} {what}"


def _wrong_type(value: object, kind: str, written: str | None) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float) and written:
        return f'is {describe_value(value, written)}, but must be a string: write it in quotes, "{written}"'
    return f"is {describe_value(value)}, but must be {_EXPECTED_TYPES[kind]}"


def _unknown_key(loc: tuple[str | int, ...], model: type[BaseModel]) -> str:
    parent, key = _model_at(model, loc[:-1]), str(loc[-1])
    moved: Mapping[str, str] = getattr(parent, "MOVED", {})
    if key in moved:
        return f"{UNKNOWN_KEY}; it moved to {moved[key]}"
    nested = [format_location((*loc[:-1], *path)) for path in _nested_paths(parent, key)][:_MOST_SUGGESTIONS]
    known = _fields(parent)
    hint = f"did you mean {' or '.join(nested)}?" if nested else did_you_mean(key, known)
    return f"{UNKNOWN_KEY}; {hint or 'known: ' + ', '.join(sorted(known))}"


def _not_one_of(value: object, expected: str) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    hint = did_you_mean(str(value), words) if len(words) > 1 else ""
    return f"is {_shown(value)}, but must be {expected}" + (f"; {hint}" if hint.startswith("did") else "")


def _model_at(model: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel]:
    """Return the model of the value at a location of the document."""
    current = model
    for part in location:
        if not isinstance(part, int):
            current = _models_in(_fields(current)[part])[0]
    return current


def _nested_paths(model: type[BaseModel], key: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a key that was written too far out: those in the model's sections and theirs, but not in lists."""
    for name, annotation in _fields(model).items():
        if any(typing.get_origin(part) is tuple for part in (annotation, *typing.get_args(annotation))):
            continue
        for section in _models_in(annotation):
            if key in _fields(section):
                yield (name, key)
            yield from ((name, *path) for path in _nested_paths(section, key))


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in an annotation: itself, or those that are optional or listed in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in _models_in(part)]
