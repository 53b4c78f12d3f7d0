"""What is wrong with a value, in words for its author; `strict` puts file and line before them."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from testbed.errors import did_you_mean
from testbed.models.document import format_location

Facts = Mapping[str, Any]
_MOST_HINTS = 3

_BOUNDS: dict[str, Callable[[Facts], str]] = {
    "greater_than": lambda facts: f"more than {facts['gt']:g}",
    "greater_than_equal": lambda facts: f"{facts['ge']} or more",
    "less_than_equal": lambda facts: f"{facts['le']} or less",
    "string_too_short": lambda facts: f"at least {facts['min_length']} characters long",
    "too_short": lambda facts: f"at least {facts['min_length']} long",
    "string_pattern_mismatch": lambda facts: f"like {facts['pattern']}",
}
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "path_type": "a path",
}


def message_for(error: ErrorDetails, model: type[BaseModel], written: str | None = None) -> str:
    """One error of a validation; `written` is the value as it stands in the file."""
    kind, value, facts = error["type"], error["input"], error.get("ctx", {})
    if kind in _BOUNDS:
        return f"is {value!r}, but must be {_BOUNDS[kind](facts)}"
    if kind in _EXPECTED:
        return _wrong_type(value, kind, written)
    match kind:
        case "extra_forbidden":
            return _unknown_key(error["loc"], model)
        case "literal_error" | "enum":
            return _not_one_of(value, facts["expected"])
        case "missing":
            return "is missing"
    return str(facts["error"]) if kind == "value_error" else f"is {value!r}: {error['msg']}"


def describe_value(value: object, written: str | None = None) -> str:
    """What a value is, as people say it, and as they wrote it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    names = {int: "the number", float: "the number", str: "the text"}
    if type(value) in names:
        return f"{names[type(value)]} {written or repr(value)}"
    return "a mapping" if isinstance(value, dict) else "a list"


def _wrong_type(value: object, kind: str, written: str | None) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float) and written:
        return f'is {describe_value(value, written)}, but must be a text: write it in quotes, "{written}"'
    return f"is {describe_value(value)}, but must be {_EXPECTED[kind]}"


def _unknown_key(loc: tuple[str | int, ...], model: type[BaseModel]) -> str:
    owner = _model_at(model, loc[:-1])
    deeper = [format_location((*loc[:-1], *place)) for place in _nested_paths(owner, str(loc[-1]))][:_MOST_HINTS]
    hint = f"did you mean {' or '.join(deeper)}?" if deeper else did_you_mean(str(loc[-1]), _fields(owner))
    return "is not a known key" + (f"; {hint}" if hint else "")


def _not_one_of(value: object, expected: str) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    hint = did_you_mean(str(value), words) if len(words) > 1 else ""
    return f"is {value!r}, but must be {expected}" + (f"; {hint}" if hint.startswith("did") else "")


def _model_at(model: type[BaseModel], place: tuple[str | int, ...]) -> type[BaseModel]:
    """The model of what stands at a place of the document."""
    current = model
    for part in place:
        if not isinstance(part, int):
            current = _models_in(_fields(current)[part])[0]
    return current


def _nested_paths(model: type[BaseModel], key: str) -> Iterator[tuple[str, ...]]:
    """Where a key stands that was written too far out: in the sections of a model, and in theirs. Lists have no such places."""
    for name, annotation in _fields(model).items():
        if any(typing.get_origin(part) is tuple for part in (annotation, *typing.get_args(annotation))):
            continue
        for section in _models_in(annotation):
            if key in _fields(section):
                yield (name, key)
            yield from ((name, *place) for place in _nested_paths(section, key))


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models in an annotation: itself, or what is optional or listed in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in _models_in(part)]
