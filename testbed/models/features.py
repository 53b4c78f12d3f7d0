"""Features: the optional parts of DRA that a driver may take part in, and the keys of its driver file that say so. Pure.

`driver_file` reads them, and `selection` names the key when a feature is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from testbed.errors import did_you_mean
from testbed.models.driver_sections import Classes, Examples

# Features that no other key speaks of: the words of spec.features. A test compares them with what requirements ask for.
DECLARED = ("device-status", "health", "metadata")
# Features that something in spec makes possible to judge.
DERIVED: Mapping[str, str] = {
    "identity": "probe.identityAttribute",
    "companion": "companions",
    "live-control": "control",
    "configuration": "configuration",
    "sharing-rounds": "sharing.uneven",
    "sharing-limits": "sharing.tooMuch",
    **{name: f"classes.{to_camel(name)}" for name in Classes.model_fields},
    **{f"example-{name.replace('_', '-')}": f"examples.{to_camel(name)}" for name in Examples.model_fields},
}


def key(feature: str) -> str:
    """Where a driver file declares a feature."""
    return f"spec.{DERIVED.get(feature, 'features')}"


def derived(spec: Mapping[str, Any]) -> frozenset[str]:
    """The features that a spec declares by other keys than `features`; it is as it stands in the file."""
    return frozenset(name for name, place in DERIVED.items() if _at(spec, place))


def _word(text: str) -> str:
    """What another key declares is judged by what is said there; a word that nobody asks for would make tests not applicable."""
    if text in DERIVED:
        raise ValueError(f"is {text}, which {key(text)} declares")
    if text not in DECLARED:
        raise ValueError(f"is {text!r}, which no requirement asks for; {did_you_mean(text, DECLARED)}")
    return text


Feature = Annotated[str, AfterValidator(_word), WithJsonSchema({"type": "string", "enum": list(DECLARED)})]


def _at(spec: Any, place: str) -> Any:
    return functools.reduce(lambda part, name: part and part.get(name), place.split("."), spec)
