"""Which nodes can use a published device: nodeName, nodeSelector or allNodes of its slice, or its own ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.kube.client import Object

_NAME = "metadata.name"
_HOSTNAME = "kubernetes.io/hostname"  # nearly always the name of the node


def place_of(spec: Object, device: Object) -> Object:
    """Return the object with nodeName, nodeSelector or allNodes of a device: its slice's spec, or with perDeviceNodeSelection itself."""
    return device if spec.get("perDeviceNodeSelection") else spec


def is_usable(spec: Object, device: Object, node: str, labels: Mapping[str, str]) -> bool:
    """Return True if a node with these labels can use a device."""
    place = place_of(spec, device)
    if place.get("nodeSelector"):
        return _selects(place["nodeSelector"], node, labels)
    return bool(place.get("allNodes")) or place.get("nodeName") == node


def is_of_nodes(spec: Object, device: Object) -> bool:
    """Return True if a device belongs to particular nodes: it has a nodeName or a nodeSelector."""
    place = place_of(spec, device)
    return bool(place.get("nodeName") or place.get("nodeSelector"))


def named_nodes(spec: Object, *devices: Object) -> frozenset[str]:
    """Return the nodes that these devices of a slice (default: all) name, in nodeName or in a nodeSelector."""
    places = [place_of(spec, device) for device in devices or spec.get("devices") or ()] or [spec]
    return frozenset(name for place in places for name in _names(place))


def _names(place: Object) -> Iterable[str]:
    if place.get("nodeName"):
        yield str(place["nodeName"])
    for term in (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
        for each in (*(term.get("matchFields") or ()), *(term.get("matchExpressions") or ())):
            if each["operator"] == "In" and each["key"] in (_NAME, _HOSTNAME):
                yield from each["values"]


def _selects(selector: Object, node: str, labels: Mapping[str, str]) -> bool:
    """Return True if one of the terms matches. An empty term matches no node."""
    return any(_matches(term, node, labels) for term in selector.get("nodeSelectorTerms") or ())


def _matches(term: Object, node: str, labels: Mapping[str, str]) -> bool:
    fields, expressions = term.get("matchFields") or (), term.get("matchExpressions") or ()
    return bool(fields or expressions) and (
        all(_holds(each, {_NAME: node}) for each in fields) and all(_holds(each, labels) for each in expressions)
    )


def _holds(rule: Object, values: Mapping[str, str]) -> bool:
    wanted: list[str] = rule.get("values") or []
    found = values.get(rule["key"])
    if rule["operator"] in ("Gt", "Lt"):
        return _is_beyond(found, wanted[0], 1 if rule["operator"] == "Gt" else -1)
    return {
        "In": found in wanted,
        "NotIn": found not in wanted,
        "Exists": found is not None,
        "DoesNotExist": found is None,
    }[rule["operator"]]


def _is_beyond(found: str | None, limit: str, sign: int) -> bool:
    try:
        return found is not None and sign * int(found) > sign * int(limit)
    except ValueError:  # not a number
        return False
