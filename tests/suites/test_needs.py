"""The devices and nodes that tests declare must match their manifests; otherwise concurrent tests compete for devices."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.conformance import Capability, Requirement, catalogue
from testbed.conformance.catalogue import Entry
from testbed.conformance.selection import Facts, choose
from testbed.models.requirement_enums import Verdict
from testbed.rendering import render_file, variables_of

MANIFESTS = folders.data("manifests") / "suites"
ENTRIES = [entry for entry in catalogue.read([folders.data("suites")]).entries if entry.manifests]


@dataclass(frozen=True)
class Needs:
    """The devices that a test may hold at once, whether it needs particular ones, and how many must be on one node.

    `one_pod` is the largest number of devices of the ordinary class that one of its pods needs. `special` is the class of all its devices
    if that is another one.
    """

    devices: int
    exclusive: bool
    together: int = 1
    one_pod: int = 1
    special: str = ""


_NODE = "the node"
# Tests whose manifests do not show what their pods get.
_OTHERWISE = {
    "STATUS-002": Needs(2, exclusive=False),  # it only names another device, on any node
    **dict.fromkeys(
        ("PREP-003", "UNPREP-004"), Needs(1, exclusive=False)
    ),  # the driver publishes one of the two devices
    "PREP-005": Needs(1, exclusive=False),  # as above
    "PREP-007": Needs(1, exclusive=False),  # as above
    "PREP-008": Needs(
        2, exclusive=True, one_pod=2
    ),  # another pod uses the first device while the claim is allocated again
    "PRESCHED-010": Needs(1, exclusive=False),  # the claim of a pod with spec.nodeName is not allocated
    "PRESCHED-011": Needs(1, exclusive=False),  # as above
    "HOTPLUG-003": Needs(2, exclusive=True, one_pod=2),  # another device of the same pool is unplugged
    "CONFIG-025": Needs(2, exclusive=False, together=2, one_pod=2),  # its pods run one after another
    "LIFE-024": Needs(2, exclusive=True, one_pod=2),  # another device of the same node is unplugged
    "CDI-006": Needs(2, exclusive=True, one_pod=2),  # its two pods run at the same time, and no other pods may
    "MULTI-001": Needs(1, exclusive=False),  # the other device belongs to another driver
    "MULTI-002": Needs(1, exclusive=False),  # as above
    "SELECT-005": Needs(0, exclusive=False),  # class and claim contradict each other
    "SELECT-006": Needs(1, exclusive=False),  # all devices have this capacity
    "SELECT-022": Needs(0, exclusive=False),  # no device can be allocated twice
    "SELECT-023": Needs(0, exclusive=False),  # a claim for 33 devices is rejected or never allocated
}


@dataclass(frozen=True)
class _Pod:
    """One pod: its ties to other pods (claims by name, or the node), and its own requests."""

    ties: frozenset[str]
    requests: tuple[Any, ...]


class _Classes:
    """The special classes by their names."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"classes.{name}"


class _Chosen(str):
    """A value that a test looked up to select particular devices."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}"


@functools.cache
def needs(entry: Entry) -> Needs:
    """Return what a test needs, from its manifests. An object that it applies twice counts once."""
    objects: dict[tuple[str, str], Any] = {}
    for name, given in _applied(entry):
        for each in _documents(name, given):
            objects[each["kind"], each["metadata"].get("name", "")] = each
    claims = {name: tuple(_devices(each["spec"])) for (kind, name), each in objects.items() if kind == "ResourceClaim"}
    pods = list(_expected_pods(objects, follows=_follows(entry)))
    groups = [_with_claims(group, claims) for group in _on_one_node(pods)]
    particular = any("CHOSEN" in _selection(each) for each in objects.values() if each["kind"] != "Pod")
    everything = any(request.get("allocationMode") == "All" for group in groups for request in group)
    found = Needs(
        devices=sum(map(_count, groups)),
        exclusive=particular or everything,
        together=max(map(_count, groups), default=0),
        one_pod=max((_count(_ordinary(_with_claims(each, claims))) for each in pods), default=0),
        special=_special({request["deviceClassName"] for group in groups for request in group}),
    )
    return _OTHERWISE.get(entry.requirement.id, found)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_declares_the_devices_of_its_manifests(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    assert declared.only_user_of in ("", found.special)
    assert _alone(declared) >= found.exclusive  # some are exclusive for other reasons
    assert declared.devices == max(1, found.one_pod if _alone(declared) else found.devices)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_declares_whether_its_devices_must_be_on_one_node(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    assert declared.spread is (not _alone(declared) and found.together <= 1 < found.devices)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_with_two_devices_for_one_pod_is_not_run_on_nodes_with_one(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    able = frozenset(each.value for each in Capability)
    fleet = Facts("1.37", 8, 8, able, frozenset(declared.features), frozenset(declared.gates), min_node_devices=1)
    spared = choose(declared, fleet).verdict is Verdict.CLUSTER_UNSUPPORTED
    assert spared is ((found.one_pod if _alone(declared) else found.together) > 1)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_uses_two_nodes_or_devices_declares_two(entry: Entry) -> None:
    expressions = {ast.unparse(node) for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.expr)}
    operations = {node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.BinOp)}
    others = {ast.unparse(node.left) for node in operations if isinstance(node.op, ast.Sub)}
    declared = entry.requirement
    assert declared.nodes > 1 or not ({"min(nodes)", "max(nodes)"} <= expressions or "nodes" in others)
    here = {"min(driver.devices_on(node))", "max(driver.devices_on(node))"} <= expressions
    assert (declared.devices > 1 and not declared.spread) or not here
    assert declared.devices > 1 or "driver.devices" not in others


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_does_not_use_the_name_of_a_node_as_that_of_a_pool(entry: Entry) -> None:
    keywords = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.keyword)]
    pools = {ast.unparse(each.value) for each in keywords if each.arg == "pool"}
    assert not [pool for pool in pools if pool.endswith("node") or "nodes" in pool]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_requests_all_devices_is_exclusive(entry: Entry) -> None:
    # An exclusive test is not run while others hold devices.
    made = [each["spec"] for name, given in _applied(entry) for each in _documents(name, given) if "spec" in each]
    wanted = [spec.get("spec", spec) for spec in made]
    requests = [request for spec in wanted if "devices" in spec for request in _devices(spec)]
    assert entry.requirement.exclusive or not [each for each in requests if each.get("allocationMode") == "All"]


def _alone(declared: Requirement) -> bool:
    return declared.exclusive or bool(declared.only_user_of)


def _special(classes: set[str]) -> str:
    """Return the special class that all requests name, or ''."""
    first, _, rest = min(classes, default="").partition(".")
    return rest if len(classes) == 1 and first == "classes" else ""


def _selection(each: Any) -> str:
    """Return what an object says about the selection of devices, without their configuration."""
    spec = each.get("spec") or {}
    content = spec.get("spec", spec)
    devices = {key: value for key, value in content.get("devices", {}).items() if key != "config"}
    return yaml.safe_dump([devices, content.get("selectors")])


def _applied(entry: Entry) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the manifests that a test applies, with the variables that have literal values."""
    for node in ast.walk(ast.parse(entry.source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply":
            names = [str(node.args[0].value)] if isinstance(node.args[0], ast.Constant) else entry.manifests
            given: dict[str, object] = {
                str(each.arg): each.value.value for each in node.keywords if isinstance(each.value, ast.Constant)
            }
            yield from ((name, given) for name in names)


def _documents(name: str, given: dict[str, object]) -> list[Any]:
    path = MANIFESTS / name
    chosen: dict[str, object] = {each: _Chosen("CHOSEN") for each in variables_of(path)}
    chosen |= {"classes": _Classes()} if "classes" in chosen else {}
    facts = {each: each for each in ("device_class", "driver", "image", "probe", "unique", "node", "attribute")}
    text = render_file(path, {**chosen, **{k: v for k, v in facts.items() if k in chosen}, **given}, allow_unused=True)
    return [each for each in yaml.safe_load_all(text) if each]


def _expected_pods(objects: dict[tuple[str, str], Any], *, follows: bool) -> Iterator[_Pod]:
    """Yield all pods that will run; in a test that uses the node of one of its pods, all are on that node."""
    for each in objects.values():
        pod, times = _pod(each)
        claims = pod.get("resourceClaims") or ()
        ties = {claim["resourceClaimName"] for claim in claims if "resourceClaimName" in claim}
        bound = follows or "nodeName" in pod or "nodeSelector" in pod or _is_pinned(pod)
        templates = [
            objects.get(("ResourceClaimTemplate", each.get("resourceClaimTemplateName", ""))) for each in claims
        ]
        own = [request for template in templates if template for request in _devices(template["spec"]["spec"])]
        yield from [_Pod(frozenset({*ties, *([_NODE] if bound else [])}), (*own, *_extended(pod)))] * times


def _is_pinned(pod: Any) -> bool:
    """Return True if the affinity of a pod names its node."""
    required = pod.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = [field for term in required.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())]
    return any((each["key"], each["operator"]) == ("metadata.name", "In") for each in fields)


def _on_one_node(pods: Iterable[_Pod]) -> list[_Pod]:
    """Return the pods, with those that must be on one node combined."""
    groups: list[_Pod] = []
    for pod in pods:
        mates = [each for each in groups if each.ties & pod.ties]
        groups = [each for each in groups if not each.ties & pod.ties]
        ties = pod.ties.union(*(each.ties for each in mates))
        groups.append(_Pod(ties, (*pod.requests, *(request for each in mates for request in each.requests))))
    return groups


def _with_claims(pod: _Pod, claims: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [*pod.requests, *(request for name in pod.ties for request in claims.get(name, ()))]


def _ordinary(requests: Iterable[Any]) -> list[Any]:
    """Return the requests for whole devices; other classes may have parts or shares of devices."""
    return [each for each in requests if each["deviceClassName"] == "device_class"]


def _count(requests: Iterable[Any]) -> int:
    return sum(int(request.get("count", 1)) for request in requests)


def _follows(entry: Entry) -> bool:
    """Return True if a test puts a pod on the node of another pod."""
    keywords = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.keyword)]
    return any(each.arg == "node" and isinstance(each.value, ast.Attribute) for each in keywords)


def _extended(pod: Any) -> Iterator[Any]:
    """Yield the extended resources of a pod as requests."""
    for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
        for name, count in container.get("resources", {}).get("limits", {}).items():
            if "/" in name:
                yield {"deviceClassName": "device_class", "count": count}


def _devices(spec: Any) -> Iterator[Any]:
    """Yield the requests that hold devices, with the largest of alternatives."""
    for request in spec["devices"].get("requests") or ():
        if "firstAvailable" in request:
            yield max(request["firstAvailable"], key=lambda each: int(each.get("count", 1)))
        elif not request["exactly"].get("adminAccess"):
            yield request["exactly"]


def _pod(each: Any) -> tuple[Any, int]:
    """Return the pod spec of an object, and how many of its pods run on one node."""
    if each["kind"] == "Pod":
        return each["spec"], 1
    spec = each.get("spec") or {}
    if "template" not in spec:
        return {}, 0
    times = spec.get("parallelism", 1) if each["kind"] == "Job" else spec.get("replicas", 1)
    return spec["template"]["spec"], times
