"""Mutants of the cluster that change allocations, reservations and what controllers write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ci.mutants.activation import cluster_mutant
from testbed.errors import ApiError
from testbed.kube.client import Kube
from tests.e2e.cluster_mutants.objects import (
    ALLOCATION,
    DEVICES,
    Object,
    claim,
    condition,
    core_object,
    dry_run,
    requests,
    resource,
    status,
    status_with_condition,
)


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


def test_fields_that_controllers_write_are_dropped_or_wrong(kube: Kube) -> None:
    rule = resource("DeviceTaintRule", {"taint": {"key": "example.com/a", "effect": "NoSchedule"}})
    kube.apply(rule)
    done = {**rule, "spec": None, "status": {"conditions": [condition("EvictionInProgress", "False")]}}
    assert dry_run(kube, done)["status"]["conditions"]
    with cluster_mutant(kube, "taint-rules-untold"):
        assert "conditions" not in dry_run(kube, done).get("status", {})
    kube.delete(rule)  # the policies for new rules are tested with this name
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
