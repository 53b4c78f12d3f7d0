"""What may be done on the nodes of a cluster that is not ours, tried out on several at once. Called by the provider at the level `restart`.

Tried are the nodes of the driver under test, and what one of them cannot counts for all; where no driver is known yet, ordinary nodes,
of which an odd one takes nothing from the others. No other node gets a pod of ours.
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

_AT_ONCE = 8
_MOST_NAMED = 3
_NOTHING = frozenset[Capability]()
_Found = tuple[frozenset[Capability], str]


@dataclass(frozen=True)
class Tried:
    """What is possible, why the rest is not, and the nodes that had no say."""

    able: frozenset[Capability]
    why_not: str = ""
    passed_over: tuple[str, ...] = ()


def try_out(pods: NodePods, nodes: Sequence[Object], expected: Collection[str]) -> Tried:
    """Try it. `expected` are the driver's nodes; none where no driver is known, or its nodes have no label yet."""
    unfit = {str(each["metadata"]["name"]): _unfit(each, expected) for each in nodes}
    fit = [name for name, why in unfit.items() if not why]
    passed_over = _grouped({name: why for name, why in unfit.items() if why})
    if not fit:
        return Tried(_NOTHING, "there is no node to try it on", passed_over)
    try:
        pods.make_home()
    except TestbedError as refused:
        return Tried(_NOTHING, refused.what, passed_over)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        found = dict(zip(fit, pool.map(pods.abilities, fit), strict=True))
    return _together(found, passed_over, all_count=bool(expected))


def _together(found: Mapping[str, _Found], passed_over: tuple[str, ...], *, all_count: bool) -> Tried:
    each = [able for able, _ in found.values()]
    able = frozenset.intersection(*each) if all_count else frozenset.union(*each)
    odd = {} if all_count else {name: why for name, (less, why) in found.items() if less != able}
    lacking = {name: why for name, (_, why) in found.items() if why and name not in odd}
    return Tried(able, "; ".join(_grouped(lacking)), passed_over + _grouped(odd))


def _unfit(node: Object, expected: Collection[str]) -> str:
    """Why a node is not tried; '' for one that is."""
    if expected and node["metadata"]["name"] not in expected:
        return "none of the driver's"
    if kube_nodes.operating_system(node) != "linux":
        return f"runs {kube_nodes.operating_system(node)}"
    if not kube_nodes.is_ready(node):
        return "not Ready"
    if not expected and (kube_nodes.lasting_taints(node) or kube_nodes.is_cordoned(node)):
        return "keeps ordinary pods away"
    return ""


def _grouped(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each reason, with its nodes."""
    nodes: dict[str, list[str]] = {}
    for name, why in reasons.items():
        nodes.setdefault(why, []).append(name)
    return tuple(f"{'nodes' if len(names) > 1 else 'node'} {_few(names)}: {why}" for why, names in nodes.items())


def _few(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
