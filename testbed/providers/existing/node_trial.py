"""Tests what the nodes of an existing cluster permit, on several nodes in parallel. Called by the provider at the level `restart`.

If the driver's nodes are known, only they are tested, and every one of them must permit a capability. Otherwise all ordinary nodes are
tested, and one of them suffices. No other node gets a pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.kube import nodes as kube_nodes
from testbed.kube.client import Object
from testbed.providers.base import Capability
from testbed.providers.existing.node_pods import NodePods

_PARALLEL = 8
_MAX_NAMES = 3
_NONE = frozenset[Capability]()
_Abilities = tuple[frozenset[Capability], str]  # what a node permits, and why the rest is missing


@dataclass(frozen=True)
class TrialResult:
    """The capabilities of the nodes, why others are missing, and the nodes that were not counted."""

    able: frozenset[Capability]
    why_not: str = ""
    not_counted: tuple[str, ...] = ()


def try_out(pods: NodePods, nodes: Sequence[Object], expected: Collection[str]) -> TrialResult:
    """Test the nodes. `expected` are the driver's nodes; it is empty if there is no driver, or its nodes have no label yet."""
    unfit = {str(each["metadata"]["name"]): _unfit(each, expected) for each in nodes}
    fit = [name for name, why in unfit.items() if not why]
    not_counted = _grouped({name: why for name, why in unfit.items() if why})
    if not fit:
        return TrialResult(_NONE, "there is no node to test", not_counted)
    try:
        pods.create_namespace()
    except TestbedError as refused:
        return TrialResult(_NONE, refused.what, not_counted)
    with ThreadPoolExecutor(max_workers=_PARALLEL) as pool:
        found = dict(zip(fit, pool.map(pods.capabilities, fit), strict=True))
    return _combined(found, not_counted, all_count=bool(expected))


def _combined(found: Mapping[str, _Abilities], not_counted: tuple[str, ...], *, all_count: bool) -> TrialResult:
    each = [able for able, _ in found.values()]
    able = frozenset.intersection(*each) if all_count else frozenset.union(*each)
    deviating = {} if all_count else {name: why for name, (less, why) in found.items() if less != able}
    lacking = {name: why for name, (_, why) in found.items() if why and name not in deviating}
    return TrialResult(able, "; ".join(_grouped(lacking)), not_counted + _grouped(deviating))


def _unfit(node: Object, expected: Collection[str]) -> str:
    """Return why a node is not tested; '' if it is."""
    if expected and node["metadata"]["name"] not in expected:
        return "not a node of the driver"
    if kube_nodes.operating_system(node) != "linux":
        return f"runs {kube_nodes.operating_system(node)}"
    if not kube_nodes.is_ready(node):
        return "not Ready"
    if not expected and (kube_nodes.lasting_taints(node) or kube_nodes.is_cordoned(node)):
        return "tainted or cordoned"
    return ""


def _grouped(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each reason, with its nodes."""
    nodes: dict[str, list[str]] = {}
    for name, why in reasons.items():
        nodes.setdefault(why, []).append(name)
    return tuple(f"{'nodes' if len(names) > 1 else 'node'} {_shortened(names)}: {why}" for why, names in nodes.items())


def _shortened(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
