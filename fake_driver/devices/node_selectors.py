"""The rules of the API for a node selector in a ResourceSlice. Pure; they apply to hardware files and slices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_driver.errors import suggestion
from fake_driver.name_patterns import DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, matches

_OPERATORS = {"matchExpressions": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), "matchFields": ("In", "NotIn")}
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def problems(selector: object) -> Iterator[str]:
    """Return what is wrong with a node selector, as phrases that follow its name."""
    terms = selector.get("nodeSelectorTerms") if isinstance(selector, Mapping) and len(selector) == 1 else None
    term = terms[0] if isinstance(terms, list) and len(terms) == 1 else None
    if not isinstance(term, Mapping) or not term or term.keys() - _OPERATORS.keys():
        yield "must be a node selector with exactly one term in nodeSelectorTerms"
        return
    for kind, requirements in term.items():
        if not isinstance(requirements, list) or not requirements:
            yield f"must have a list of requirements in {kind}"
            return
        yield from (
            f"has a requirement that {problem}" for each in requirements for problem in _requirement(kind, each)
        )


def _requirement(kind: str, requirement: object) -> Iterator[str]:
    if not isinstance(requirement, Mapping) or not {"key", "operator"} <= requirement.keys() <= {
        "key",
        "operator",
        "values",
    }:
        yield "is not a mapping of key, operator and values"
        return
    if not matches(LABEL_KEY, requirement["key"]) or (kind == "matchFields" and requirement["key"] != "metadata.name"):
        what = "a label key" if kind == "matchExpressions" else "metadata.name"
        yield f"has the key {requirement['key']!r}, but it must be {what}"
    if requirement["operator"] not in _OPERATORS[kind]:
        yield f"has the operator {requirement['operator']!r}; {suggestion(str(requirement['operator']), _OPERATORS[kind])}"
        return
    values = requirement.get("values", [])
    if not isinstance(values, list) or not all(_is_value(kind, requirement["operator"], value) for value in values):
        yield f"has {values!r}, which are not valid for {requirement['operator']}"
    elif not _are_enough(kind, requirement, values):
        yield f"has {len(values)} values, which {requirement['operator']} does not allow"


def _is_value(kind: str, operator: str, value: Any) -> bool:
    if operator in {"Gt", "Lt"}:
        return matches(_NUMBER, value)
    return matches(DNS_SUBDOMAIN, value) if kind == "matchFields" else value == "" or matches(LABEL_VALUE, value)


def _are_enough(kind: str, requirement: Mapping[str, Any], values: Sequence[Any]) -> bool:
    if requirement["operator"] in {"Exists", "DoesNotExist"}:
        return not values
    return len(values) == 1 if kind == "matchFields" or requirement["operator"] in {"Gt", "Lt"} else bool(values)
