"""What a test declares that it needs of the cluster, against what its manifests ask for: else two tests at once want the same devices."""

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
    """The devices that a test may hold at once, whether it wants particular ones, and how many have to be on one node.

    `one_pod` is what the greediest of its pods has to have of the ordinary class. `special` is the class of all its devices, where that is
    another one.
    """

    devices: int
    exclusive: bool
    together: int = 1
    one_pod: int = 1
    special: str = ""


_NODE = "the node"
# Where manifests cannot tell what their pods get: it never comes to it, or any device will do.
_OTHERWISE = {
    "STATUS-002": Needs(2, exclusive=False),  # it only speaks of another device, wherever that is
    "PREP-005": Needs(1, exclusive=False),  # the driver has one of the two devices, nobody the other
    "PRESCHED-010": Needs(1, exclusive=False),  # nobody allocates the claim of a pod that names its node
    "PRESCHED-011": Needs(1, exclusive=False),  # as above
    "HOTPLUG-003": Needs(2, exclusive=True, one_pod=2),  # another device of the same pool is taken out meanwhile
    "CDI-006": Needs(2, exclusive=True, one_pod=2),  # its two pods run at once, and nobody else's may
    "MULTI-001": Needs(1, exclusive=False),  # the other device is another driver's
    "MULTI-002": Needs(1, exclusive=False),  # as above
    "SELECT-005": Needs(0, exclusive=False),  # class and claim contradict each other
    "SELECT-006": Needs(1, exclusive=False),  # all devices have so much of it
    "SELECT-022": Needs(0, exclusive=False),  # two of one device cannot be had
    "SELECT-023": Needs(0, exclusive=False),  # a claim for 33 devices is refused, or never allocated
}


@dataclass(frozen=True)
class _Wish:
    """One pod: what ties it to other pods (a claim by its name, or the node), and what it asks for alone."""

    ties: frozenset[str]
    requests: tuple[Any, ...]


class _Classes:
    """The special classes, each by its name."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"classes.{name}"


class _Chosen(str):
    """What a test looked up about devices that it then asks for by name."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}"


@functools.cache
def needs(entry: Entry) -> Needs:
    """From all that the test applies; an object that it applies twice counts once."""
    objects: dict[tuple[str, str], Any] = {}
    for name, given in _applied(entry):
        for each in _documents(name, given):
            objects[each["kind"], each["metadata"].get("name", "")] = each
    claims = {name: tuple(_devices(each["spec"])) for (kind, name), each in objects.items() if kind == "ResourceClaim"}
    pods = list(_wishes(objects, follows=_follows(entry)))
    groups = [_with_claims(group, claims) for group in _on_one_node(pods)]
    particular = any("CHOSEN" in _choosing(each) for each in objects.values() if each["kind"] != "Pod")
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
def test_a_test_declares_what_its_manifests_ask_for(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    assert declared.only_user_of in ("", found.special)
    assert _alone(declared) >= found.exclusive  # some want to be alone for what no manifest tells
    assert declared.devices == max(1, found.one_pod if _alone(declared) else found.devices)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_says_whether_its_devices_have_to_be_on_one_node(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    assert declared.spread is (not _alone(declared) and found.together <= 1 < found.devices)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_no_pod_is_asked_to_have_two_devices_where_each_node_has_one(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    able = frozenset(each.value for each in Capability)
    fleet = Facts("1.37", 8, 8, able, frozenset(declared.features), frozenset(declared.gates), min_node_devices=1)
    spared = choose(declared, fleet).verdict is Verdict.CLUSTER_UNSUPPORTED
    assert spared is ((found.one_pod if _alone(declared) else found.together) > 1)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_tells_one_from_another_declares_two(entry: Entry) -> None:
    said = {ast.unparse(node) for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.expr)}
    left_over = {node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.BinOp)}
    others = {ast.unparse(node.left) for node in left_over if isinstance(node.op, ast.Sub)}
    declared = entry.requirement
    assert declared.nodes > 1 or not ({"min(nodes)", "max(nodes)"} <= said or "nodes" in others)
    here = {"min(driver.devices_on(node))", "max(driver.devices_on(node))"} <= said
    assert (declared.devices > 1 and not declared.spread) or not here
    assert declared.devices > 1 or "driver.devices" not in others


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_does_not_take_the_name_of_a_node_for_that_of_a_pool(entry: Entry) -> None:
    keywords = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.keyword)]
    pools = {ast.unparse(each.value) for each in keywords if each.arg == "pool"}
    assert not [pool for pool in pools if pool.endswith("node") or "nodes" in pool]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_takes_all_devices_is_exclusive(entry: Entry) -> None:
    # Where somebody else holds one of them, it is spared by that word.
    made = [each["spec"] for name, given in _applied(entry) for each in _documents(name, given) if "spec" in each]
    wanted = [spec.get("spec", spec) for spec in made]
    requests = [request for spec in wanted if "devices" in spec for request in _devices(spec)]
    assert entry.requirement.exclusive or not [each for each in requests if each.get("allocationMode") == "All"]


def _alone(declared: Requirement) -> bool:
    return declared.exclusive or bool(declared.only_user_of)


def _special(classes: set[str]) -> str:
    """The special class of the driver file that all requests name, if they do."""
    first, _, rest = min(classes, default="").partition(".")
    return rest if len(classes) == 1 and first == "classes" else ""


def _choosing(each: Any) -> str:
    """What is said about which devices are meant: not how they are to be configured."""
    spec = each.get("spec") or {}
    said = spec.get("spec", spec)
    devices = {key: value for key, value in said.get("devices", {}).items() if key != "config"}
    return yaml.safe_dump([devices, said.get("selectors")])


def _applied(entry: Entry) -> Iterator[tuple[str, dict[str, object]]]:
    """The manifests that become objects, with the variables whose values the test says."""
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


def _wishes(objects: dict[tuple[str, str], Any], *, follows: bool) -> Iterator[_Wish]:
    """Every pod that there will be on a node; those of a test that follows one of its pods are all where that one is."""
    for each in objects.values():
        pod, times = _pod(each)
        claims = pod.get("resourceClaims") or ()
        ties = {claim["resourceClaimName"] for claim in claims if "resourceClaimName" in claim}
        bound = follows or "nodeName" in pod or "nodeSelector" in pod or _is_pinned(pod)
        templates = [
            objects.get(("ResourceClaimTemplate", each.get("resourceClaimTemplateName", ""))) for each in claims
        ]
        own = [request for template in templates if template for request in _devices(template["spec"]["spec"])]
        yield from [_Wish(frozenset({*ties, *([_NODE] if bound else [])}), (*own, *_extended(pod)))] * times


def _is_pinned(pod: Any) -> bool:
    """Whether its affinity names the node that it has to be on."""
    required = pod.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    fields = [field for term in required.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())]
    return any((each["key"], each["operator"]) == ("metadata.name", "In") for each in fields)


def _on_one_node(pods: Iterable[_Wish]) -> list[_Wish]:
    """The pods, those that have to be on one node taken together."""
    groups: list[_Wish] = []
    for pod in pods:
        mates = [each for each in groups if each.ties & pod.ties]
        groups = [each for each in groups if not each.ties & pod.ties]
        ties = pod.ties.union(*(each.ties for each in mates))
        groups.append(_Wish(ties, (*pod.requests, *(request for each in mates for request in each.requests))))
    return groups


def _with_claims(wish: _Wish, claims: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [*wish.requests, *(request for name in wish.ties for request in claims.get(name, ()))]


def _ordinary(requests: Iterable[Any]) -> list[Any]:
    """What counts as a device of a node: what the driver's other classes have may be a part or a share of one."""
    return [each for each in requests if each["deviceClassName"] == "device_class"]


def _count(requests: Iterable[Any]) -> int:
    return sum(int(request.get("count", 1)) for request in requests)


def _follows(entry: Entry) -> bool:
    """Whether it puts a pod on the node of another one."""
    keywords = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.keyword)]
    return any(each.arg == "node" and isinstance(each.value, ast.Attribute) for each in keywords)


def _extended(pod: Any) -> Iterator[Any]:
    """What its containers ask for in their limits."""
    for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
        for name, count in container.get("resources", {}).get("limits", {}).items():
            if "/" in name:
                yield {"deviceClassName": "device_class", "count": count}


def _devices(spec: Any) -> Iterator[Any]:
    """Requests that take devices away from others; of alternatives the largest one."""
    for request in spec["devices"].get("requests") or ():
        if "firstAvailable" in request:
            yield max(request["firstAvailable"], key=lambda each: int(each.get("count", 1)))
        elif not request["exactly"].get("adminAccess"):
            yield request["exactly"]


def _pod(each: Any) -> tuple[Any, int]:
    """The pod in an object, and how many of it there are on one node."""
    if each["kind"] == "Pod":
        return each["spec"], 1
    spec = each.get("spec") or {}
    if "template" not in spec:
        return {}, 0
    times = spec.get("parallelism", 1) if each["kind"] == "Job" else spec.get("replicas", 1)
    return spec["template"]["spec"], times
