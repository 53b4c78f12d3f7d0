"""What a test declares that it needs of the cluster, against what its manifests ask for: else two tests at once want the same devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.conformance import catalogue
from testbed.conformance.catalogue import Entry
from testbed.rendering import render_file, variables_of

MANIFESTS = folders.data("manifests") / "suites"
ENTRIES = [entry for entry in catalogue.read([folders.data("suites")]).entries if entry.manifests]


@dataclass(frozen=True)
class Needs:
    """The devices that a test may hold at once, and whether it wants particular ones."""

    devices: int
    exclusive: bool


# Where manifests cannot tell what their pods get: it never comes to it, or any device will do.
_OTHERWISE = {
    "MULTI-001": Needs(1, exclusive=False),  # the other device is another driver's
    "MULTI-002": Needs(1, exclusive=False),  # as above
    "CLAIM-027": Needs(1, exclusive=False),  # the second pod, with a claim of its own, is never scheduled
    "SELECT-005": Needs(0, exclusive=False),  # class and claim contradict each other
    "SELECT-006": Needs(1, exclusive=False),  # all devices have so much of it
    "SELECT-022": Needs(0, exclusive=False),  # two of one device cannot be had
    "SELECT-023": Needs(0, exclusive=False),  # a claim for 33 devices is refused, or never allocated
}


class _Chosen(str):
    """What a test looked up about devices that it then asks for by name."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}"


def needs(entry: Entry) -> Needs:
    """From all that the test applies; an object that it applies twice counts once."""
    objects: dict[tuple[str, str], Any] = {}
    for name, given in _applied(entry):
        for each in _documents(name, given):
            objects[each["kind"], each["metadata"].get("name", "")] = each
    asked = [part for each in objects.values() for part in _requests(each, objects)]
    particular = any("CHOSEN" in _choosing(each) for each in objects.values() if each["kind"] != "Pod")
    everything = any(request.get("allocationMode") == "All" for request, _ in asked)
    devices = sum(request.get("count", 1) * times for request, times in asked)
    return _OTHERWISE.get(entry.requirement.id, Needs(devices, particular or everything))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_declares_what_its_manifests_ask_for(entry: Entry) -> None:
    found, declared = needs(entry), entry.requirement
    assert declared.exclusive >= found.exclusive  # some want to be alone for what no manifest tells
    assert declared.exclusive or declared.devices == max(1, found.devices)


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
    chosen = {each: _Chosen("CHOSEN") for each in variables_of(path)}
    facts = {each: each for each in ("device_class", "driver", "image", "probe", "unique", "node", "attribute")}
    text = render_file(path, {**chosen, **{k: v for k, v in facts.items() if k in chosen}, **given}, allow_unused=True)
    return [each for each in yaml.safe_load_all(text) if each]


def _requests(each: Any, objects: dict[tuple[str, str], Any]) -> Iterator[tuple[Any, int]]:
    """What an object asks for, and how many times: claims that a pod uses, and pods for the claims that are made for them."""
    used = {
        claim.get("resourceClaimName") for one in objects.values() for claim in _pod(one)[0].get("resourceClaims", ())
    }
    if each["kind"] == "ResourceClaim" and each["metadata"]["name"] in used:
        yield from ((request, 1) for request in _devices(each["spec"]))
    pod, times = _pod(each)
    for claim in pod.get("resourceClaims") or ():
        template = objects.get(("ResourceClaimTemplate", claim.get("resourceClaimTemplateName", "")))
        if template:
            yield from ((request, times) for request in _devices(template["spec"]["spec"]))


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
