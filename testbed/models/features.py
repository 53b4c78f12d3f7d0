"""Features: the parts of DRA that a driver may lack, and the keys of its driver file that declare them. Pure.

`driver_file` derives a driver's features from them, and `selection` names the missing ones with their keys.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

from testbed.errors import did_you_mean
from testbed.models.driver_sections import Classes

# Features that no other key declares: the values of spec.features. A test compares them with the features of requirements.
DECLARED = ("device-status", "health", "metadata")
# Features that every driver has unless its driver file exempts it: the values of spec.exempt, with their meaning.
EXEMPTIBLE: Mapping[str, str] = {
    "shared-claims": "several pods use one claim at the same time",
    "shared-by-containers": "several containers of a pod refer to one claim",
    "several-claims": "a container refers to several claims",
    "one-request": "a container refers to one request of a claim, and not to the whole claim",
    "admin-access": "pods of an administrator see devices that others use",
    "per-container": "a container sees the devices that it refers to, and no others of its pod",
    "cdi": "everything that a claim adds to a container is defined by CDI",
}
# Features that another key of spec declares.
DERIVED: Mapping[str, str] = {
    "identity": "devices.identity",
    "companion": "companions",
    "previous-release": "install.previous",
    "live-control": "control",
    "configuration": "configuration.one",
    "two-configurations": "configuration.other",
    "configuration-precedence": "configuration.precedence",
    "invalid-configuration": "configuration.invalid",
    "sharing-rounds": "optional.capacity.uneven",
    "sharing-limits": "optional.capacity.tooMuch",
    **{name: f"optional.{to_camel(name)}" for name in Classes.model_fields},
    "example-attribute": "devices.examples.attribute",
    "example-capacity": "devices.examples.capacity",
    "example-match-attribute": "devices.examples.match",
}
EXEMPT = (
    "exempt:"  # begins the features of requirements about exemptions: the exempt use is refused, and not silently wrong
)
# The only values of these keys that declare the feature.
_VALUES: Mapping[str, Collection[str]] = {"configuration-precedence": ("claim", "class")}


def exemptions(exempt: Collection[str]) -> frozenset[str]:
    """Return the features that a driver has because it is exempt from these."""
    return frozenset(f"{EXEMPT}{name}" for name in exempt)


def declaring_key(feature: str) -> str:
    """Return the key of a driver file that declares a feature."""
    if feature.startswith(EXEMPT):
        return "spec.exempt"
    key = f"spec.{DERIVED.get(feature, 'features')}"
    return f"{key}: {' or '.join(_VALUES[feature])}" if feature in _VALUES else key


def explain_missing(wanted: Collection[str], declared: Collection[str]) -> str:
    """Explain with keys of the driver file why wanted features are missing; '' if none is."""
    missing = sorted(set(wanted).difference(declared))
    required = [each for each in missing if each.startswith(EXEMPT)]
    exempt = [each for each in missing if each in EXEMPTIBLE]
    undeclared = [f"{each} ({declaring_key(each)})" for each in missing if each not in (*required, *exempt)]
    reasons = {
        "does not declare": ", ".join(undeclared),
        "exempts the driver from": _in_spec_exempt(exempt),
        "does not exempt the driver from": _in_spec_exempt([each.removeprefix(EXEMPT) for each in required]),
    }
    return "; ".join(f"the driver file {verb} {names}" for verb, names in reasons.items() if names)


def _in_spec_exempt(names: Sequence[str]) -> str:
    return f"{', '.join(names)} (spec.exempt)" if names else ""


def derived_features(spec: Mapping[str, Any]) -> frozenset[str]:
    """Return the features that a spec declares by other keys than `features`. Its keys are spelled as in the file."""
    values = {name: _at(spec, path) for name, path in DERIVED.items()}
    return frozenset(name for name, value in values.items() if value and value in _VALUES.get(name, (value,)))


def _check_feature(text: str) -> str:
    """Return a value of spec.features. Raise ValueError if another key declares it or no requirement needs it."""
    if text in DERIVED:
        raise ValueError(f"is {text}, which {declaring_key(text)} declares; remove it here")
    if text in EXEMPTIBLE:
        raise ValueError(f"is {text}, which every driver has unless spec.exempt lists it; remove it here")
    if text not in DECLARED:
        raise ValueError(f"is {text!r}, which is not a feature; {did_you_mean(text, DECLARED)}")
    return text


def _check_exemption(text: str) -> str:
    """Return a value of spec.exempt. Raise ValueError if drivers cannot be exempt from it."""
    if text not in EXEMPTIBLE:
        raise ValueError(f"is {text!r}, which is not a possible exemption; {did_you_mean(text, EXEMPTIBLE)}")
    return text


Feature = Annotated[str, AfterValidator(_check_feature), WithJsonSchema({"type": "string", "enum": list(DECLARED)})]
Exemption = Annotated[
    str, AfterValidator(_check_exemption), WithJsonSchema({"type": "string", "enum": list(EXEMPTIBLE)})
]


def _at(spec: Any, path: str) -> Any:
    return functools.reduce(lambda part, name: part and part.get(name), path.split("."), spec)
