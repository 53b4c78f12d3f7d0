from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.published.placement import is_of_nodes, is_usable, named_nodes

LABELS = {"rack": "a", "slots": "8"}


def _selecting(**term: Any) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": [term]}}


def _rule(operator: str, key: str = "rack", *values: str) -> list[dict[str, Any]]:
    return [{"key": key, "operator": operator, "values": list(values)}]


@pytest.mark.parametrize(
    ("place", "usable"),
    [
        ({"nodeName": "node-1"}, True),
        ({"nodeName": "node-2"}, False),
        ({"allNodes": True}, True),
        (_selecting(matchExpressions=_rule("In", "rack", "a", "b")), True),
        (_selecting(matchExpressions=_rule("NotIn", "rack", "a")), False),
        (_selecting(matchExpressions=_rule("Exists")), True),
        (_selecting(matchExpressions=_rule("DoesNotExist", "gpu")), True),
        (_selecting(matchExpressions=_rule("Gt", "slots", "4")), True),
        (_selecting(matchExpressions=_rule("Lt", "slots", "4")), False),
        (_selecting(matchExpressions=_rule("Gt", "rack", "4")), False),
        (_selecting(matchFields=_rule("In", "metadata.name", "node-1"), matchExpressions=_rule("Exists")), True),
        (_selecting(), False),  # an empty term matches no node
    ],
)
def test_nodes_that_can_use_a_device(place: dict[str, Any], usable: bool) -> None:
    assert is_usable(place, {}, "node-1", LABELS) is usable
    assert is_usable({"perDeviceNodeSelection": True}, place, "node-1", LABELS) is usable
    assert is_of_nodes(place, {}) is ("allNodes" not in place)


def test_named_nodes() -> None:
    by_name, by_host = (
        _rule("In", key, name) for key, name in (("metadata.name", "a"), ("kubernetes.io/hostname", "b"))
    )
    devices = [{"nodeName": "c"}, _selecting(matchFields=by_name), _selecting(matchExpressions=by_host)]
    spec = {"perDeviceNodeSelection": True, "devices": devices}
    assert named_nodes(spec) == {"a", "b", "c"}
    assert named_nodes(spec, devices[1]) == {"a"}
    assert named_nodes({"allNodes": True, "devices": [{}]}) == frozenset()
