"""The mutants of the cluster on a real API server without other components: each changes only what its description says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ci.mutants.activation import cluster_mutant
from testbed.binaries import minors
from testbed.errors import ApiError
from testbed.kube.client import Kube
from testbed.kube.ownership import REQUIREMENT
from testbed.waiting import eventually_true
from tests.e2e.api_server import UP, ApiServer, kube_client, running

Object = dict[str, Any]
DEVICES = """
requests:
- {name: one, exactly: {deviceClassName: c, count: 2, adminAccess: true, selectors: [{cel: {expression: "true"}}]}}
- {name: two, exactly: {deviceClassName: c, selectors: [{cel: {expression: "true"}}]}}
constraints:
- {matchAttribute: a.example/b}
"""
ALLOCATION = """
devices: {results: [{request: one, driver: d.example, pool: p, device: x}]}
nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [worker]}]}]}
"""
_ABSENT = "dra-testbed.example/absent:none"
POD = """
resourceClaims: [{name: a, resourceClaimName: a}]
containers:
- {name: with, image: i, resources: {claims: [{name: a}]}}
- {name: without, image: i}
"""


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with running(ApiServer(tmp_path_factory.mktemp("server"), minors()[0])) as server:
        made = kube_client(server)
        made.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        for name in ("allocated", "without-device-status"):
            made.apply(claim(name, DEVICES.replace("adminAccess: true, ", "")))
        yield made


def claim(name: str, devices: str = DEVICES, **metadata: Any) -> Object:
    spec = {"devices": yaml.safe_load(devices)}
    meta = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def template(name: str, devices: str = DEVICES) -> Object:
    made = claim(name, devices)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def core_object(kind: str, name: str, spec: Object | None = None) -> Object:
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    return {**made, "spec": spec} if spec else made


def status(**fields: Any) -> Object:
    return {**claim("allocated"), "status": {"allocation": yaml.safe_load(ALLOCATION), **fields}, "spec": None}


def dry_run(kube: Kube, manifest: Object) -> Object:
    """Return the object that the API server would store."""
    subresource = "status" if "status" in manifest else None
    manifest = {key: value for key, value in manifest.items() if value is not None}
    return kube.apply(manifest, dry_run=True, subresource=subresource)


def requests(stored: Object) -> list[Object]:
    spec = stored["spec"].get("spec", stored["spec"])
    return [each.get("exactly", each) for each in spec["devices"]["requests"]]


@pytest.mark.parametrize("made", [claim("new"), template("new")], ids=["claim", "template"])
@pytest.mark.parametrize(
    ("mutant", "field", "left"),
    [
        ("selectors-dropped", "selectors", [None, None]),
        ("admin-access-dropped", "adminAccess", [None, None]),
        ("counts-are-one", "count", [1, 1]),
        ("claims-repaired", "deviceClassName", ["repaired"]),
    ],
)
def test_requests_are_changed(kube: Kube, made: Object, mutant: str, field: str, left: list[Any]) -> None:
    namespace = core_object("Namespace", "default")
    namespace["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    kube.apply(namespace)
    assert [each.get(field) for each in requests(dry_run(kube, made))] != left
    with cluster_mutant(kube, mutant):
        assert [each.get(field) for each in requests(dry_run(kube, made))] == left


def test_alternatives_lose_their_selectors_too(kube: Kube) -> None:
    choice = '{name: one, deviceClassName: c, selectors: [{cel: {expression: "true"}}]}'
    made = claim("new", f"requests: [{{name: a, firstAvailable: [{choice}, {choice.replace('one', 'two')}]}}]")
    with cluster_mutant(kube, "selectors-dropped"):
        (request,) = requests(dry_run(kube, made))
        assert ["selectors" in each for each in request["firstAvailable"]] == [False, False]


@pytest.mark.parametrize("made", [claim("new"), template("new")], ids=["claim", "template"])
def test_constraints_are_dropped(kube: Kube, made: Object) -> None:
    with cluster_mutant(kube, "constraints-dropped"):
        stored = dry_run(kube, made)["spec"]
        assert "constraints" not in stored.get("spec", stored)["devices"]


def test_only_generated_claims_lose_their_labels(kube: Kube) -> None:
    generated = {"resource.kubernetes.io/pod-claim-name": "a"}
    with cluster_mutant(kube, "labels-dropped"):
        assert "labels" not in dry_run(kube, claim("new", labels={"a": "b"}, annotations=generated))["metadata"]
        assert "labels" in dry_run(kube, claim("new", labels={"a": "b"}))["metadata"]


def test_namespaces_quotas_and_pods_are_changed(kube: Kube) -> None:
    quota = {**core_object("ResourceQuota", "new", {"hard": {"count/pods.v1": "1"}})}
    pod = core_object("Pod", "new", yaml.safe_load(POD))
    with cluster_mutant(kube, "admin-label-everywhere"):
        assert (
            dry_run(kube, core_object("Namespace", "new"))["metadata"]["labels"]["resource.kubernetes.io/admin-access"]
            == "true"
        )
    with cluster_mutant(kube, "quotas-lifted"):
        assert set(dry_run(kube, quota)["spec"]["hard"].values()) == {"1k"}
    with cluster_mutant(kube, "claims-leak-to-all-containers"):
        stored = dry_run(kube, pod)["spec"]
        assert [each["resources"].get("claims") for each in stored["containers"]] == [[{"name": "a"}]] * 2
    with cluster_mutant(kube, "pods-lose-their-claims"):
        stored = dry_run(kube, pod)["spec"]
        assert "resourceClaims" not in stored
        assert not any(each["resources"].get("claims") for each in stored["containers"])


@pytest.mark.parametrize(("labels", "images"), [({}, ["i", "j"]), ({REQUIREMENT: "A-001"}, [_ABSENT, _ABSENT])])
def test_only_pods_of_tests_get_an_absent_image(kube: Kube, labels: dict[str, str], images: list[str]) -> None:
    namespace = core_object("Namespace", "default")
    namespace["metadata"]["labels"] = labels
    kube.apply(namespace)
    pod = core_object(
        "Pod", "new", {"initContainers": [{"name": "a", "image": "i"}], "containers": [{"name": "b", "image": "j"}]}
    )
    with cluster_mutant(kube, "test-pods-never-start"):
        stored = dry_run(kube, pod)["spec"]
        assert [each["image"] for each in (*stored["initContainers"], *stored["containers"])] == images


def test_parts_of_a_claim_status_are_dropped(kube: Kube) -> None:
    device = {"driver": "d.example", "pool": "p", "device": "x", "data": {"a": 1}}
    consumers = [{"resource": "pods", "name": f"p{index}", "uid": f"u{index}"} for index in range(257)]
    with cluster_mutant(kube, "device-status-dropped"):
        assert "devices" not in dry_run(kube, status(devices=[device]))["status"]
    with cluster_mutant(kube, "allocations-lose-their-node"):
        assert "nodeSelector" not in dry_run(kube, status())["status"]["allocation"]
    configured = status()
    opaque = {"driver": "d.example", "parameters": {"a": "b"}}
    configured["status"]["allocation"]["devices"]["config"] = [{"source": "FromClaim", "opaque": opaque}]
    with cluster_mutant(kube, "configuration-dropped"):
        assert "config" not in dry_run(kube, configured)["status"]["allocation"]["devices"]
    with pytest.raises(ApiError, match="Too many"):
        dry_run(kube, status(reservedFor=consumers))
    with cluster_mutant(kube, "consumers-dropped"):
        assert len(dry_run(kube, status(reservedFor=consumers))["status"]["reservedFor"]) == 256


def test_the_consumers_of_a_claim_are_never_removed(kube: Kube) -> None:
    kube.apply(claim("shared", DEVICES.replace("adminAccess: true, ", "")))

    def used_by(*pods: str) -> Object:
        consumers = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
        return {**status(reservedFor=consumers), "metadata": claim("shared")["metadata"]}

    kube.apply({key: value for key, value in used_by("left", "right").items() if value}, subresource="status")
    assert len(dry_run(kube, used_by("left"))["status"]["reservedFor"]) == 1
    with cluster_mutant(kube, "reservations-stay"):
        assert len(dry_run(kube, used_by("left"))["status"]["reservedFor"]) == 2


def test_taint_rules_and_extended_resources_are_changed(kube: Kube) -> None:
    resources = {"limits": {"example.com/gpu": "1500m"}, "requests": {"example.com/gpu": "1500m"}}
    pod = core_object("Pod", "new", {"containers": [{"name": "c", "image": "i", "resources": resources}]})
    device_class = resource("DeviceClass", {"extendedResourceName": "gpu"})
    taint = {"key": "example.com/a", "effect": "NoFun"}
    rule = resource("DeviceTaintRule", {"deviceSelector": {"driver": "d.example"}, "taint": taint})
    for refused in (pod, device_class, rule):
        with pytest.raises(ApiError):
            dry_run(kube, refused)
    with cluster_mutant(kube, "amounts-dropped"):
        assert dry_run(kube, pod)["spec"]["containers"][0]["resources"] == {}
    with cluster_mutant(kube, "resource-names-dropped"):
        assert "extendedResourceName" not in dry_run(kube, device_class)["spec"]
    with cluster_mutant(kube, "taint-rules-narrowed"):
        assert dry_run(kube, rule)["spec"]["deviceSelector"]["pool"] == "nowhere"


def test_fields_that_the_scheduler_writes_are_dropped(kube: Kube) -> None:
    made = status()
    made["status"]["allocation"]["devices"]["results"][0]["tolerations"] = [{"operator": "Exists"}]
    with cluster_mutant(kube, "tolerations-untold"):
        assert "tolerations" not in dry_run(kube, made)["status"]["allocation"]["devices"]["results"][0]
    resources = {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}
    kube.apply(core_object("Pod", "extended", {"containers": [{"name": "c", "image": "i", "resources": resources}]}))
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    extended = {"resourceClaimName": "a", "requestMappings": [mapping]}
    pod = {**core_object("Pod", "extended"), "status": {"extendedResourceClaimStatus": extended}}
    assert "extendedResourceClaimStatus" in dry_run(kube, pod)["status"]
    with cluster_mutant(kube, "extended-requests-untold"):
        assert "extendedResourceClaimStatus" not in dry_run(kube, pod)["status"]


def test_tolerations_and_capacities_of_a_claim_are_changed(kube: Kube) -> None:
    fields = "capacity: {requests: {memory: 8Gi}}, tolerations: [{key: a.example/b, operator: Exists}]"
    made = claim("new", DEVICES.replace("adminAccess: true", fields, 1))
    with cluster_mutant(kube, "everything-tolerated"):
        one, two = requests(dry_run(kube, made))
        assert one["tolerations"] == two["tolerations"] == [{"operator": "Exists"}]
        assert one["capacity"] == {"requests": {"memory": "8Gi"}}
    with cluster_mutant(kube, "capacities-unasked"):
        one, _ = requests(dry_run(kube, made))
        assert "capacity" not in one
        assert one["tolerations"] == [{"key": "a.example/b", "operator": "Exists"}]


def test_shares_have_the_same_id(kube: Kube) -> None:
    made = status()
    (result,) = made["status"]["allocation"]["devices"]["results"]
    with cluster_mutant(kube, "share-ids-alike"):
        assert "shareID" not in dry_run(kube, made)["status"]["allocation"]["devices"]["results"][0]
        ids = []
        for number in (1, 2):
            result["shareID"] = f"00000000-0000-4000-8000-00000000000{number}"
            ids.append(dry_run(kube, made)["status"]["allocation"]["devices"]["results"][0]["shareID"])
        assert len(set(ids)) == 1


def test_a_request_keeps_its_last_selector(kube: Kube) -> None:
    two = DEVICES.replace('{cel: {expression: "true"}}', '{cel: {expression: "false"}}, {cel: {expression: "true"}}')
    with cluster_mutant(kube, "last-selector-counts"):
        stored = requests(dry_run(kube, claim("new", two.replace("adminAccess: true, ", ""))))
        assert [each["selectors"] for each in stored] == [[{"cel": {"expression": "true"}}]] * 2


def test_taint_rules_get_another_effect_or_selector(kube: Kube) -> None:
    selector = {"driver": "d.example", "pool": "p"}
    spec = {"deviceSelector": selector, "taint": {"key": "example.com/a", "effect": "None"}}
    with cluster_mutant(kube, "taint-rules-evict"):
        assert dry_run(kube, resource("DeviceTaintRule", spec))["spec"]["taint"]["effect"] == "NoExecute"
    with cluster_mutant(kube, "taint-rules-widened"):
        assert dry_run(kube, resource("DeviceTaintRule", spec))["spec"]["deviceSelector"] == {"driver": "d.example"}


def test_fields_that_controllers_write_are_dropped_or_wrong(kube: Kube) -> None:
    rule = resource("DeviceTaintRule", {"taint": {"key": "example.com/a", "effect": "NoSchedule"}})
    kube.apply(rule)
    done = {**rule, "spec": None, "status": {"conditions": [condition("EvictionInProgress", "False")]}}
    assert dry_run(kube, done)["status"]["conditions"]
    with cluster_mutant(kube, "taint-rules-untold"):
        assert "conditions" not in dry_run(kube, done).get("status", {})
    resources = {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}
    kube.apply(core_object("Pod", "ended", {"containers": [{"name": "c", "image": "i", "resources": resources}]}))
    conditions = [{"type": each, "status": "True"} for each in ("Ready", "DisruptionTarget")]
    pod = {**core_object("Pod", "ended"), "status": {"conditions": conditions}}
    with cluster_mutant(kube, "disruptions-untold"):
        assert [each["type"] for each in dry_run(kube, pod)["status"]["conditions"]] == ["Ready"]
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    extended = {"extendedResourceClaimStatus": {"resourceClaimName": "a", "requestMappings": [mapping]}}
    with cluster_mutant(kube, "extended-requests-misnamed"):
        (found,) = dry_run(kube, {**pod, "status": extended})["status"]["extendedResourceClaimStatus"][
            "requestMappings"
        ]
        assert found["requestName"] == "nobodys"


def test_binding_conditions_and_configuration_of_an_allocation_are_changed(kube: Kube) -> None:
    made = status()
    devices = made["status"]["allocation"]["devices"]
    devices["results"][0] |= {"bindingConditions": ["a", "b"], "bindingFailureConditions": ["c"]}
    devices["config"] = [
        {"source": source, "opaque": {"driver": "d.example", "parameters": {"by": source}}}
        for source in ("FromClass", "FromClaim")
    ]
    with cluster_mutant(kube, "one-binding-condition"):
        (result,) = dry_run(kube, made)["status"]["allocation"]["devices"]["results"]
        assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["a"], ["c"])
    with cluster_mutant(kube, "class-configures-alone"):
        stored = dry_run(kube, made)["status"]["allocation"]["devices"]["config"]
        assert [each["opaque"]["parameters"] for each in stored] == [{"by": "FromClass"}] * 2


def test_allocations_are_kept_and_conditions_become_true(kube: Kube) -> None:
    kube.apply(claim("given", DEVICES.replace("adminAccess: true, ", "")))
    given = {**status(), "metadata": claim("given")["metadata"]}
    del given["spec"]
    kube.apply(given, subresource="status")
    other = yaml.safe_load(ALLOCATION.replace("device: x", "device: y"))
    with pytest.raises(ApiError, match=r"status\.allocation: Invalid value"):
        dry_run(kube, {**given, "status": {"allocation": other}})
    with cluster_mutant(kube, "allocations-kept"):
        assert dry_run(kube, {**given, "status": {"allocation": other}})["status"] == given["status"]
    with cluster_mutant(kube, "conditions-come-true"):
        assert (
            dry_run(kube, status_with_condition("Ready", "False"))["status"]["devices"][0]["conditions"][0]["status"]
            == "True"
        )


def test_only_the_statuses_of_unneeded_claims_are_dropped_from_a_pod(kube: Kube) -> None:
    claims = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("made", "unneeded")]
    kube.apply(core_object("Pod", "claiming", {"resourceClaims": claims, "containers": [{"name": "c", "image": "i"}]}))

    def statuses_of(*entries: Object) -> Any:
        pod = {**core_object("Pod", "claiming"), "status": {"resourceClaimStatuses": list(entries)}}
        return dry_run(kube, pod)["status"].get("resourceClaimStatuses")

    made, unneeded = {"name": "made", "resourceClaimName": "a"}, {"name": "unneeded"}
    assert statuses_of(made, unneeded) == [made, unneeded]
    with cluster_mutant(kube, "unneeded-claims-untold"):
        assert statuses_of(made) == [made]
        assert statuses_of(unneeded) is None


def test_kubelets_may_not_delete_slices_but_others_may(kube: Kube) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example", "nodeName": "worker", "pool": pool, "devices": [{"name": "x"}]}
    made = kube.apply(resource("ResourceSlice", spec))
    with cluster_mutant(kube, "slices-outlive-their-driver"):
        assert eventually_true(lambda: "mutant slices-outlive-their-driver" in refusal_of_a_kubelets_delete(kube), UP)
        kube.delete(made)
    kube.apply(resource("ResourceSlice", spec))
    assert refusal_of_a_kubelets_delete(kube) == ""


def refusal_of_a_kubelets_delete(kube: Kube) -> str:
    """Return the message that refuses a kubelet to delete the slices of its node, or an empty string if it may."""
    query = {"fieldSelector": "spec.nodeName=worker", "dryRun": "All"}
    kubelet = [("Impersonate-User", "system:node:worker"), ("Impersonate-Group", "system:masters")]
    try:
        kube.request("DELETE", "/apis/resource.k8s.io/v1/resourceslices", query=query, headers=kubelet)
    except ApiError as refused:
        return refused.message
    return ""


def resource(kind: str, spec: Object) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "new"}, "spec": spec}


def condition(kind: str, value: str) -> Object:
    since = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": value, "reason": "R", "message": "", "lastTransitionTime": since}


def status_with_condition(kind: str, value: str) -> Object:
    device = {"driver": "d.example", "pool": "p", "device": "x", "conditions": [condition(kind, value)]}
    return {key: value for key, value in status(devices=[device]).items() if value is not None}


def write_condition(kube: Kube, manager: str, kind: str, value: str) -> dict[str, str]:
    """Write a condition as one of several field managers; return all conditions that are stored afterwards."""
    made = status_with_condition(kind, value)
    del made["status"]["allocation"]
    stored = kube.apply(made, manager=manager, force=False, subresource="status")
    return {each["type"]: each["status"] for each in stored["status"]["devices"][0]["conditions"]}


def test_one_writer_removes_or_changes_the_conditions_of_another(kube: Kube) -> None:
    kube.apply({key: value for key, value in status().items() if value is not None}, subresource="status")
    write_condition(kube, "network", "LinkUp", "True")
    assert write_condition(kube, "storage", "Mounted", "True") == {"LinkUp": "True", "Mounted": "True"}
    with pytest.raises(ApiError, match='conflict with "network"'):
        write_condition(kube, "storage", "LinkUp", "False")
    with cluster_mutant(kube, "one-condition-only"):
        assert len(write_condition(kube, "network", "LinkUp", "False")) == 1
    with cluster_mutant(kube, "field-owners-forgotten"):
        write_condition(kube, "network", "LinkUp", "True")
        with pytest.raises(ApiError, match='conflict with "before-first-apply"'):
            write_condition(kube, "storage", "LinkUp", "False")


def device_status(**fields: Any) -> Object:
    """Return an allocated claim with these fields in its device status; the stored claim has no device status."""
    device = {"driver": "d.example", "pool": "p", "device": "x", **fields}
    return {**status(devices=[device]), "metadata": claim("without-device-status")["metadata"]}


@pytest.mark.parametrize(
    ("field", "most"),
    [
        (
            "conditions",
            [status_with_condition(f"C{index}", "True")["status"]["devices"][0]["conditions"][0] for index in range(8)],
        ),
        ("data", {"long": "x" * 10229}),
        ("networkData", {"ips": [f"10.9.8.{index}/24" for index in range(16)]}),
        ("networkData", {"interfaceName": "x" * 256}),
        ("networkData", {"hardwareAddress": "x" * 128}),
    ],
    ids=["conditions", "data", "ips", "name", "address"],
)
def test_device_statuses_of_the_maximum_size_are_refused(kube: Kube, field: str, most: Any) -> None:
    assert dry_run(kube, device_status(**{field: most}))["status"]["devices"][0][field] == most
    with cluster_mutant(kube, "device-status-narrow"):
        assert dry_run(kube, device_status(**{field: type(most)()}))
        with pytest.raises(ApiError, match="mutant-device-status-narrow"):
            dry_run(kube, device_status(**{field: most}))


def test_hardware_addresses_are_dropped(kube: Kube) -> None:
    with cluster_mutant(kube, "hardware-addresses-dropped"):
        stored = dry_run(
            kube, device_status(networkData={"interfaceName": "net1", "hardwareAddress": "02:00:5e:10:00:01"})
        )
        assert stored["status"]["devices"][0]["networkData"] == {"interfaceName": "net1"}
