"""The features and properties that tests require must match what they use; otherwise a correct driver fails them."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
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
from testbed.models.driver.devices import ClaimShape
from testbed.models.features import DECLARED, DERIVED, EXEMPTIBLE
from testbed.models.requirement_enums import Level, Tier, Verdict
from testbed.rendering import render_file, variables_of

MANIFESTS = folders.data("manifests") / "suites"
ENTRIES = catalogue.read([folders.data("suites")]).entries
GATES = sorted({gate for entry in ENTRIES for gate in entry.requirement.gates})
ABLE = frozenset(each.value for each in Capability)
_RARE = {
    "unforgeable": "only a test in which a pod forges variables needs it",
    "rights": "selection derives it from the ability to act as the driver",
}
WORDS = [*(("given", word) for word in GIVEN if word not in _RARE), *(("features", word) for word in EXEMPTIBLE)]

# Several pods of these tests name one claim, but never share it.
_NOT_SHARED = {
    "SHARE-008": "the pods run one after another",
    "SHARE-010": "the second pod is never scheduled",
    "CLAIM-027": "the second pod is never scheduled",
    "STATUS-006": "the pods run one after another",
    "PRESCHED-010": "the second pod waits for another claim",
    "PRESCHED-011": "the second pod waits for another claim",
    "PRESCHED-013": "the claim is never reserved for the second pod",
}
# Containers of these tests refer to only some devices of their pod, and the tests do not check whether they see more.
_NOT_CHECKED = {
    "CLAIM-001": "it checks that the pod sees both devices",
    "CLAIM-011": "it checks that each container sees its own device at least",
    "CLAIM-015": "it checks that the pod sees all devices",
    "CLAIM-016": "containers may see the device of their pod",
    "CLAIM-017": "it checks that the pod sees both devices",
    "CONFIG-008": "it checks that each container has the configuration of its own device at least",
    "PREP-005": "one container has no device that can be prepared, so none runs",
    "MULTI-002": "it checks what the pod sees",
    "EXEMPT-005": "it is about drivers with this exemption",
    "HEALTH-004": "the kubelet reports it",
    "META-003": "files are mounted for each container",
}


# Claims of these tests are refused by the API server, or no pod uses them.
_NEVER_PREPARED = {"API-002", "API-003", "SELECT-023", "SELECT-024"}
EVERYTHING = frozenset({*DECLARED, *DERIVED, *EXEMPTIBLE})


class _Anything(str):
    """A value for a variable of a manifest that has all attributes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}-{name}"


def test_tests_that_request_all_devices_of_a_node_need_few_devices() -> None:
    assert _with("given", "few") == _ids(_asks_for_all)


def test_tests_that_use_devices_of_a_node_need_local_devices() -> None:
    assert _ids(lambda entry: bool(re.search(r"devices_on\(|devices_with_value\(", entry.source))) <= _with(
        "given", "local"
    )


def test_tests_that_choose_an_ordinary_device_assume_one_class() -> None:
    chooses = re.compile(r"driver\.(devices|devices_on|devices_with_value)\b")
    creates = _ids(lambda entry: entry.requirement.tier in (Tier.E2E, Tier.DISRUPTIVE))
    assert _ids(lambda entry: bool(chooses.search(entry.source))) & creates == _with("given", "one-class")


def test_tests_that_expect_different_devices_need_unshared_devices() -> None:
    counted = r"len\((\w+\.)?(all_)?devices\) == [2-9]|\bdevices\.isdisjoint|one, other = .*\.devices$"
    # Shares of devices have IDs, which tests that write allocations or statuses do not use.
    written = r"name=device\.name|apply_status\(\"device_status"
    sure = re.compile(f"{counted}|{written}", re.MULTILINE)
    ordinary = _ids(lambda entry: bool(sure.search(entry.source)) and not entry.requirement.only_user_of)
    assert ordinary <= _with("given", "unshared")


def test_tests_that_write_how_many_devices_a_request_has_declare_it() -> None:
    for entry in ENTRIES:
        assert _written_counts(entry) <= {*entry.requirement.counts}, entry.requirement.id


def test_tests_that_expect_one_device_declare_it() -> None:
    one = re.compile(r"\(\w+,\)[^=\n]* = .*devices|len\([\w.()\"]*devices\) == \d")
    expect = [e for e in ENTRIES if one.search(e.source) and e.requirement.tier in (Tier.E2E, Tier.DISRUPTIVE)]
    ordinary = [each.requirement for each in expect if not each.requirement.only_user_of]
    assert not [each.id for each in ordinary if not each.counts]


def test_tests_that_write_an_allocation_or_none_of_a_claim_assume_plain_claims() -> None:
    allocates = _ids(lambda entry: "basic/allocation.yaml" in entry.manifests) - _NEVER_PREPARED
    extended = _ids(lambda entry: any("limits" in each for one in _pods(entry) for each in _mappings(one)))
    assert allocates | extended <= _with("given", "alone")
    assert extended | _ids(lambda entry: "settings == NONE" in entry.source) <= _with("given", "unconfigured")


SHAPES: list[dict[str, Any]] = [
    {"classes": 2},
    {"counts": "all"},
    {"counts": [1]},
    {"counts": [2]},
    {"counts": [4, 8]},
    {"configuration": "required"},
    {"with": ["nic.example.com"]},
    {"counts": "all", "configuration": "required", "with": ["nic.example.com"]},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_most_of_the_core_applies_to_a_driver_with_each_shape_of_claims(shape: dict[str, Any]) -> None:
    claim = ClaimShape.model_validate_json(json.dumps({key: value for key, value in shape.items() if key != "classes"}))
    untrue = {
        "one-class": "classes" in shape,
        "unconfigured": claim.configuration == "required",
        "alone": bool(claim.with_),
    }
    given = frozenset(word for word in GIVEN if not untrue.get(word))
    plain = expected_facts(minors()[-1], 2, EVERYTHING)
    core = [entry.requirement for entry in ENTRIES if profile(CORE).has(entry.requirement.id)]
    musts = [each for each in core if each.level is Level.MUST and choose(each, plain).verdict is None]
    judged = [each.id for each in musts if choose(each, replace(plain, given=given, claim=claim)).verdict is None]
    assert len(judged) >= 0.6 * len(musts), f"only {judged} of {len(musts)}"


def test_a_driver_that_cannot_share_a_claim_may_be_exempt() -> None:
    shared = (
        _ids(lambda entry: any(times > 1 for times in Counter(_claims_of_pods(entry)).values())) - _about_exemptions()
    )
    assert shared >= _NOT_SHARED.keys()
    assert _with("features", "shared-claims") == shared - _NOT_SHARED.keys()


def test_a_driver_with_one_configuration_is_judged_by_it() -> None:
    uses_both = _ids(lambda entry: any("settings.other" in (MANIFESTS / name).read_text() for name in entry.manifests))
    assert _with("features", "two-configurations") == uses_both
    assert uses_both < _with("features", "configuration")


def test_a_driver_without_admin_access_may_be_exempt() -> None:
    assert (
        _with("features", "admin-access") == _ids(lambda entry: "admin_scenario" in entry.source) - _about_exemptions()
    )


def test_a_driver_that_prepares_devices_for_whole_pods_may_be_exempt() -> None:
    looks = re.compile(r"\b(seen|printed)_devices\b|\bsettings\b|\benvironment\b|_messages\b|metadata_files")
    parted = _ids(lambda entry: bool(looks.search(entry.source)) and any(map(_has_different_containers, _pods(entry))))
    assert parted >= _NOT_CHECKED.keys()
    assert _with("features", "per-container") == parted - _NOT_CHECKED.keys()


def test_a_driver_that_cannot_share_a_claim_among_containers_may_be_exempt() -> None:
    shared = _ids(lambda entry: any(map(_shares_a_claim, _pods(entry))))
    assert _with("features", "shared-by-containers") == shared - _about_exemptions()


def test_a_driver_whose_containers_cannot_have_several_claims_may_be_exempt() -> None:
    several = _ids(lambda entry: any(len(claims) > 1 for pod in _pods(entry) for claims in _claims_of_containers(pod)))
    assert _with("features", "several-claims") == several - _about_exemptions()


def test_a_driver_whose_containers_cannot_have_one_request_of_a_claim_may_be_exempt() -> None:
    chosen = _ids(lambda entry: any("request" in each for pod in _pods(entry) for each in _references(pod)))
    assert _with("features", "one-request") == chosen - _about_exemptions()


@pytest.mark.parametrize("exemption", sorted(EXEMPTIBLE.keys() - {"cdi"}))
def test_each_exemption_has_a_requirement_that_the_use_is_not_wrong_silently(exemption: str) -> None:
    (found,) = _with("features", f"exempt:{exemption}")
    assert found.startswith("EXEMPT-")


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
def test_tests_that_use_a_gated_feature_name_the_gate(used: str, gate: str) -> None:
    sure = re.compile(used)
    users = _ids(lambda entry: bool(sure.search(entry.source)) or any(map(sure.search, _texts(entry))))
    assert users
    assert users <= _with("gates", gate)


@pytest.mark.parametrize("gate", GATES)
def test_tests_with_a_gate_are_not_run_when_it_is_off(gate: str) -> None:
    judged = [entry.requirement for entry in ENTRIES if gate in entry.requirement.gates]
    for each in judged:
        on = Facts("1.37", 2, 8, ABLE, frozenset(each.features), frozenset(each.gates), min_node_devices=4)
        assert choose(each, on).verdict is None
        off = replace(on, gates=on.gates - {gate})
        assert choose(each, off).verdict is Verdict.NOT_APPLICABLE
        off = replace(off, default_gates=frozenset({gate}))
        assert choose(each, off).verdict is Verdict.CLUSTER_UNSUPPORTED


@pytest.mark.parametrize("minor", [*minors(), "1.38"])
def test_gates_that_are_on_in_all_supported_versions(minor: str) -> None:
    suites = ("ADMIN", "STATUS", "PRIO", "MONITOR", "CDI", "API")
    gates = {gate for entry in ENTRIES if entry.requirement.id.startswith(suites) for gate in entry.requirement.gates}
    assert gates <= default_gates(minor)


@pytest.mark.parametrize(("field", "word"), WORDS, ids=lambda word: word)
def test_each_exemption_applies_to_some_tests_but_not_to_most(field: str, word: str) -> None:
    spared = [entry for entry in ENTRIES if word in getattr(entry.requirement, field)]
    assert 4 <= len(spared) < len(ENTRIES) / 5


def test_most_of_the_core_applies_to_a_driver_with_all_exemptions() -> None:
    core = [entry.requirement for entry in ENTRIES if profile(CORE).has(entry.requirement.id)]
    facts = expected_facts(minors()[0], 2, frozenset({"identity", "device-status"}))
    judged = [each for each in core if choose(each, facts).verdict is None]
    assert len(judged) > len(core) / 2


def _ids(is_so: Callable[[Entry], bool]) -> set[str]:
    return {entry.requirement.id for entry in ENTRIES if is_so(entry)}


def _with(field: str, word: str) -> set[str]:
    return _ids(lambda entry: word in getattr(entry.requirement, field))


def _texts(entry: Entry) -> list[str]:
    return [(MANIFESTS / name).read_text() for name in entry.manifests]


def _asks_for_all(entry: Entry) -> bool:
    """Return True if a pod of the test requests all devices of the ordinary class, or all of some kind."""
    parts = [each for name in _applied(entry) for each in _mappings(list(_documents(name)))]
    return any(each.get("allocationMode") == "All" and each["deviceClassName"] == "device_class" for each in parts)


def _written_counts(entry: Entry) -> set[int | str]:
    """Return the counts of ordinary devices that manifests of the test contain for claims that are prepared."""
    if entry.requirement.id in _NEVER_PREPARED:
        return set()
    requests = [each for name in _applied(entry) for each in _mappings(list(_documents(name))) if _is_ordinary(each)]
    counts: set[int | str] = {1 for each in requests if _selects_by_attributes(each)}
    counts |= {"all" for each in requests if each.get("allocationMode") == "All"}
    return counts | {each["count"] for each in requests if isinstance(each.get("count"), int)}


def _selects_by_attributes(request: dict[str, Any]) -> bool:
    return "device.attributes[" in str(request.get("selectors")) and not {"count", "allocationMode"} & request.keys()


def _is_ordinary(request: dict[str, Any]) -> bool:
    return str(request.get("deviceClassName")) in ("device_class", "unique")


def _applied(entry: Entry) -> list[str]:
    """Return the manifests that a test applies."""
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
    """Yield all mappings in a value, at any depth."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(each)


def _pods(entry: Entry) -> list[dict[str, Any]]:
    """Return the specs of the pods of a test, each as often as it has replicas."""
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


def _about_exemptions() -> set[str]:
    return _ids(lambda entry: entry.requirement.id.startswith("EXEMPT-"))


def _references(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the references of all containers to claims."""
    containers = (*pod.get("initContainers", ()), *pod.get("containers", ()))
    return [each for one in containers for each in _resources(one).get("claims", ())]


def _claims_of_containers(pod: dict[str, Any]) -> list[set[str]]:
    """Return the claims that each container of a pod refers to. All extended resources of a pod are in one claim."""
    containers = [_resources(each) for each in (*pod.get("initContainers", ()), *pod.get("containers", ()))]
    extended = [{"extended"} if any("/" in name for name in one.get("limits", ())) else set() for one in containers]
    return [
        {each["name"] for each in one.get("claims", ())} | more for one, more in zip(containers, extended, strict=True)
    ]


def _shares_a_claim(pod: dict[str, Any]) -> bool:
    times = Counter(name for claims in _claims_of_containers(pod) for name in claims)
    return any(count > 1 for count in times.values())


def _has_different_containers(pod: dict[str, Any]) -> bool:
    """Return True if the containers of a pod refer to different devices, or not to all claims."""
    claims = {each["name"] for each in pod.get("resourceClaims", ())}
    containers = [_resources(each) for each in (*pod.get("initContainers", ()), *pod.get("containers", ()))]
    parts = {frozenset((each["name"], each.get("request")) for each in one.get("claims", ())) for one in containers}
    extended = any("/" in name for one in containers for name in one.get("limits", ()))
    return (
        len(parts) > 1 or (extended and len(containers) > 1) or {name for part in parts for name, _ in part} != claims
    )


def _resources(container: dict[str, Any]) -> dict[str, Any]:
    return dict(container.get("resources") or {})
