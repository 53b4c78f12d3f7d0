"""What is wrong with a node selector, as the API server sees it in ResourceSlices. Pure; files and slices are checked with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_driver.errors import suggestion
from fake_driver.name_patterns import DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, matches

_OPERATORS = {"matchExpressions": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), "matchFields": ("In", "NotIn")}
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def problems(selector: object) -> Iterator[str]:
    """Each as the rest of a sentence that begins with the selector; nothing when the API server will take it."""
    terms = selector.get("nodeSelectorTerms") if isinstance(selector, Mapping) and len(selector) == 1 else None
    term = terms[0] if isinstance(terms, list) and len(terms) == 1 else None
    if not isinstance(term, Mapping) or not term or term.keys() - _OPERATORS.keys():
        yield "must be one as pods have it, with exactly one of nodeSelectorTerms"
        return
    for kind, rules in term.items():
        if not isinstance(rules, list) or not rules:
            yield f"must have a list of rules as {kind}"
            return
        yield from (f"has a rule that {problem}" for rule in rules for problem in _rule(kind, rule))


def _rule(kind: str, rule: object) -> Iterator[str]:
    if not isinstance(rule, Mapping) or not {"key", "operator"} <= rule.keys() <= {"key", "operator", "values"}:
        yield "is no mapping of key, operator and values"
        return
    if not matches(LABEL_KEY, rule["key"]) or (kind == "matchFields" and rule["key"] != "metadata.name"):
        what = "the name of a label" if kind == "matchExpressions" else "metadata.name"
        yield f"has the key {rule['key']!r}, but it must be {what}"
    if rule["operator"] not in _OPERATORS[kind]:
        yield f"has the operator {rule['operator']!r}; {suggestion(str(rule['operator']), _OPERATORS[kind])}"
        return
    values = rule.get("values", [])
    if not isinstance(values, list) or not all(_is_value(kind, rule["operator"], value) for value in values):
        yield f"has {values!r}, which are no values for {rule['operator']}"
    elif not _are_enough(kind, rule, values):
        yield f"has {len(values)} values, which {rule['operator']} cannot have"


def _is_value(kind: str, operator: str, value: Any) -> bool:
    if operator in {"Gt", "Lt"}:
        return matches(_NUMBER, value)
    return matches(DNS_SUBDOMAIN, value) if kind == "matchFields" else value == "" or matches(LABEL_VALUE, value)


def _are_enough(kind: str, rule: Mapping[str, Any], values: Sequence[Any]) -> bool:
    if rule["operator"] in {"Exists", "DoesNotExist"}:
        return not values
    return len(values) == 1 if kind == "matchFields" or rule["operator"] in {"Gt", "Lt"} else bool(values)
