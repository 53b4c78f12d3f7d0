"""Features: the parts of DRA that not every driver takes part in, and the keys of its driver file that say so. Pure.

`driver_file` reads them, and `selection` says what is missing, and of which key.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from testbed.errors import did_you_mean
from testbed.models.driver_sections import Classes, Examples

# Features that no other key speaks of: the words of spec.features. A test compares them with what requirements ask for.
DECLARED = ("device-status", "health", "metadata")
# Features that every driver takes part in unless its driver file exempts it: the words of spec.exempt, and what each is about.
EXEMPTIBLE: Mapping[str, str] = {
    "shared-claims": "several pods use one claim at the same time",
    "admin-access": "pods of an administrator see devices that others use",
    "per-container": "a container sees the devices that it refers to, and no others of its pod",
    "cdi": "what a claim adds to a container comes by CDI",
}
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


def declaring_key(feature: str) -> str:
    """Where a driver file declares a feature."""
    return f"spec.{DERIVED.get(feature, 'features')}"


def explain_missing(wanted: Collection[str], there: Collection[str]) -> str:
    """What a driver file says, or does not say, so that features that somebody wants are not there; '' where all are."""
    absent = sorted(set(wanted).difference(there))
    undeclared = ", ".join(f"{each} ({declaring_key(each)})" for each in absent if each not in EXEMPTIBLE)
    exempt = ", ".join(each for each in absent if each in EXEMPTIBLE)
    said = {"does not declare": undeclared, "exempts the driver from": f"{exempt} (spec.exempt)" if exempt else ""}
    return "; ".join(f"the driver file {verb} {names}" for verb, names in said.items() if names)


def derived_features(spec: Mapping[str, Any]) -> frozenset[str]:
    """The features that a spec declares by other keys than `features`; it is as it stands in the file."""
    return frozenset(name for name, place in DERIVED.items() if _at(spec, place))


def _check_feature(text: str) -> str:
    """What another key declares is judged by what is said there; a word that nobody asks for would make tests not applicable."""
    if text in DERIVED:
        raise ValueError(f"is {text}, which {declaring_key(text)} declares")
    if text in EXEMPTIBLE:
        raise ValueError(f"is {text}, which every driver has that spec.exempt does not name")
    if text not in DECLARED:
        raise ValueError(f"is {text!r}, which no requirement asks for; {did_you_mean(text, DECLARED)}")
    return text


def _check_exemption(text: str) -> str:
    """An exemption makes requirements free: nobody gets one by a typing error, or from what he has to declare anyhow."""
    if text not in EXEMPTIBLE:
        raise ValueError(f"is {text!r}, from which no driver is exempt; {did_you_mean(text, EXEMPTIBLE)}")
    return text


Feature = Annotated[str, AfterValidator(_check_feature), WithJsonSchema({"type": "string", "enum": list(DECLARED)})]
Exemption = Annotated[
    str, AfterValidator(_check_exemption), WithJsonSchema({"type": "string", "enum": list(EXEMPTIBLE)})
]


def _at(spec: Any, place: str) -> Any:
    return functools.reduce(lambda part, name: part and part.get(name), place.split("."), spec)
