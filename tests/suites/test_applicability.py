"""What a test takes for granted of a driver and a cluster, against what it does: else a driver that is right fails it."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.binaries.lock import minors
from testbed.conformance import Capability, catalogue
from testbed.conformance.catalogue import Entry
from testbed.conformance.facts import default_gates, expected_facts
from testbed.conformance.profiles import CORE, profile
from testbed.conformance.requirement import GIVEN
from testbed.conformance.selection import Facts, choose
from testbed.models.features import EXEMPTIBLE
from testbed.models.requirement_enums import Verdict
from testbed.rendering import render_file, variables_of

MANIFESTS = folders.data("manifests") / "suites"
ENTRIES = catalogue.read([folders.data("suites")]).entries
GATES = sorted({gate for entry in ENTRIES for gate in entry.requirement.gates})
ABLE = frozenset(each.value for each in Capability)
WORDS = [*(("given", word) for word in GIVEN), *(("features", word) for word in EXEMPTIBLE)]

# Several pods of these name one claim, and a driver that cannot share it is never asked to.
_NOT_AT_ONCE = {
    "SHARE-008": "the pods come one after another",
    "SHARE-010": "the second pod is never scheduled",
    "CLAIM-027": "the second pod is never scheduled",
    "STATUS-006": "the pods come one after another",
    "PRESCHED-009": "the driver has to refuse the second pod anyhow",
    "PRESCHED-010": "the second pod waits for another claim",
    "PRESCHED-011": "the second pod waits for another claim",
    "PRESCHED-013": "the claim is never reserved for the second pod",
}
# Containers of these refer to a part of what their pod has, and nobody looks whether they see more.
_NOT_LOOKED_AT = {
    "CLAIM-014": "it looks at the container with the whole claim",
    "CAP-008": "both containers have the same device",
    "HEALTH-004": "it is the kubelet that says it",
    "META-003": "files are mounted for each container, however it comes to its device",
}


class _Anything(str):
    """A variable of a manifest, with whatever parts the manifest wants of it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}-{name}"


def test_all_devices_of_a_node_are_asked_for_where_one_allocation_can_have_them() -> None:
    assert _that_say("given", "few") == _ids(_asks_for_all)


def test_devices_of_one_node_are_asked_for_where_devices_belong_to_nodes() -> None:
    assert _ids(lambda entry: bool(re.search(r"devices_on\(|devices_with_value\(", entry.source))) <= _that_say(
        "given", "local"
    )


def test_different_devices_are_expected_where_claims_cannot_share_one() -> None:
    counted = r"len\((\w+\.)?(all_)?devices\) == [2-9]|\bdevices\.isdisjoint|one, other = .*\.devices$"
    # The API server and drivers know a share of a device by an id, which no test that writes an allocation or a status has.
    written = r"name=device\.name|apply_status\(\"device_status"
    sure = re.compile(f"{counted}|{written}", re.MULTILINE)
    ordinary = _ids(lambda entry: bool(sure.search(entry.source)) and not entry.requirement.only_user_of)
    assert ordinary <= _that_say("given", "unshared")


def test_a_driver_that_cannot_share_a_claim_may_be_exempt() -> None:
    shared = _ids(lambda entry: any(times > 1 for times in Counter(_claims_of_pods(entry)).values()))
    assert shared >= _NOT_AT_ONCE.keys()
    assert _that_say("features", "shared-claims") == shared - _NOT_AT_ONCE.keys()


def test_a_driver_without_admin_access_may_be_exempt() -> None:
    assert _that_say("features", "admin-access") == _ids(lambda entry: "admin_scenario" in entry.source)


def test_a_driver_that_gives_devices_to_whole_pods_may_be_exempt() -> None:
    looks = re.compile(r"\b(seen|printed)_devices\b|\bsettings\b|\benvironment\b|_messages\b|metadata_files")
    parted = _ids(lambda entry: bool(looks.search(entry.source)) and any(map(_is_parted, _pods(entry))))
    assert parted >= _NOT_LOOKED_AT.keys()
    assert _that_say("features", "per-container") == parted - _NOT_LOOKED_AT.keys()


@pytest.mark.parametrize(
    ("used", "gate"),
    [
        ("adminAccess: ", "DRAAdminAccess"),
        ("firstAvailable:", "DRAPrioritizedList"),
        (
            r'apply_status\("device_status/|should_be_refused\("device_status/|share_ids_with_status',
            "DRAResourceClaimDeviceStatus",
        ),
        (r"kubelets\.(list_claims|get_claims|cdi_ids)\(", "KubeletPodResourcesDynamicResources"),
        (r"kubelets\.(get_claims|cdi_ids)\(", "KubeletPodResourcesGet"),
    ],
)
def test_what_a_gate_switches_off_is_used_where_it_is_on(used: str, gate: str) -> None:
    sure = re.compile(used)
    users = _ids(lambda entry: bool(sure.search(entry.source)) or any(map(sure.search, _texts(entry))))
    assert users
    assert users <= _that_say("gates", gate)


@pytest.mark.parametrize("gate", GATES)
def test_nothing_is_judged_by_what_needs_a_gate_that_is_off(gate: str) -> None:
    judged = [entry.requirement for entry in ENTRIES if gate in entry.requirement.gates]
    for each in judged:
        there = Facts("1.37", 2, 8, ABLE, frozenset(each.features), frozenset(each.gates), min_node_devices=4)
        assert choose(each, there).verdict is None
        off = Facts("1.37", 2, 8, ABLE, frozenset(each.features), frozenset(each.gates) - {gate}, min_node_devices=4)
        assert choose(each, off).verdict is Verdict.CLUSTER_UNSUPPORTED


@pytest.mark.parametrize("minor", [*minors(), "1.38"])
def test_what_was_on_before_there_were_versions_to_choose_from_is_judged_in_all(minor: str) -> None:
    suites = ("ADMIN", "STATUS", "PRIO", "MONITOR", "CDI", "API")
    gates = {gate for entry in ENTRIES if entry.requirement.id.startswith(suites) for gate in entry.requirement.gates}
    assert gates <= default_gates(minor)


@pytest.mark.parametrize(("field", "word"), WORDS, ids=lambda word: word)
def test_every_word_spares_some_and_leaves_most_of_the_rest(field: str, word: str) -> None:
    spared = [entry for entry in ENTRIES if word in getattr(entry.requirement, field)]
    assert 4 <= len(spared) < len(ENTRIES) / 5


def test_who_is_exempt_from_everything_is_judged_by_most_of_the_core_all_the_same() -> None:
    core = [entry.requirement for entry in ENTRIES if profile(CORE).has(entry.requirement.id)]
    facts = expected_facts(minors()[0], 2, frozenset({"identity", "device-status"}))
    judged = [each for each in core if choose(each, facts).verdict is None]
    assert len(judged) > len(core) / 2


def _ids(is_so: Callable[[Entry], bool]) -> set[str]:
    return {entry.requirement.id for entry in ENTRIES if is_so(entry)}


def _that_say(field: str, word: str) -> set[str]:
    return _ids(lambda entry: word in getattr(entry.requirement, field))


def _texts(entry: Entry) -> list[str]:
    return [(MANIFESTS / name).read_text() for name in entry.manifests]


def _asks_for_all(entry: Entry) -> bool:
    """Whether pods of it have every device of the ordinary class that a node can use, or every one of some kind."""
    parts = [each for name in _applied(entry) for each in _mappings(list(_documents(name)))]
    return any(each.get("allocationMode") == "All" and each["deviceClassName"] == "device_class" for each in parts)


def _applied(entry: Entry) -> list[str]:
    """The manifests that become objects."""
    names: list[str] = []
    for node in ast.walk(ast.parse(entry.source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply":
            names += [str(node.args[0].value)] if isinstance(node.args[0], ast.Constant) else entry.manifests
    return list(dict.fromkeys(names))


@functools.cache
def _documents(name: str) -> tuple[Any, ...]:
    path = MANIFESTS / name
    text = render_file(path, {each: _Anything(each) for each in variables_of(path)})
    return tuple(each for each in yaml.safe_load_all(text) if each)


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in it, at any depth."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(each)


def _pods(entry: Entry) -> list[dict[str, Any]]:
    """The specs of the pods that a test makes, each as often as there are of it at one time."""
    found = {(each["kind"], each["metadata"]["name"]): each for name in _applied(entry) for each in _documents(name)}
    pods = []
    for each in found.values():
        spec = each.get("spec") or {}
        pod = spec if each["kind"] == "Pod" else spec["template"]["spec"] if "template" in spec else None
        pods += [pod] * spec.get("replicas", 1) if pod else []
    return pods


def _claims_of_pods(entry: Entry) -> list[str]:
    claims = [each for pod in _pods(entry) for each in pod.get("resourceClaims", ())]
    return [each["resourceClaimName"] for each in claims if "resourceClaimName" in each]


def _is_parted(pod: dict[str, Any]) -> bool:
    """Whether its containers refer to different parts of what the pod has, or not to all of its claims."""
    claims = {each["name"] for each in pod.get("resourceClaims", ())}
    containers = [_resources(each) for each in (*pod.get("initContainers", ()), *pod.get("containers", ()))]
    parts = {frozenset((each["name"], each.get("request")) for each in one.get("claims", ())) for one in containers}
    extended = any("/" in name for one in containers for name in one.get("limits", ()))
    return (
        len(parts) > 1 or (extended and len(containers) > 1) or {name for part in parts for name, _ in part} != claims
    )


def _resources(container: dict[str, Any]) -> dict[str, Any]:
    return dict(container.get("resources") or {})
