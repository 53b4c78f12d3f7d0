from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.errors import WaitTimeout
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.claims import PROTECTION, Claim
from testbed.vocabulary.observing.observation import NotObserved
from testbed.vocabulary.world import World

Make = Callable[..., World]
SEEN = {"type": "Seen", "status": "True"}
DEVICE = Device("d.example.com", "pool", "gpu-0")
RESULT = {"request": "device/small", "driver": "d.example.com", "pool": "pool", "device": "gpu-0"}
ALLOCATED: Any = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [{"name": "a"}, {"name": "b"}]}
OWNED: Any = {
    "uid": "u",
    "finalizers": [PROTECTION],
    "ownerReferences": [{"kind": "Pod", "name": "a", "controller": True}],
}


@pytest.fixture
def claim(world: Make) -> Callable[..., Claim]:
    def make(status: Any = None, **metadata: Any) -> Claim:
        here = world()
        kube: Any = here.kube
        kube.put("ResourceClaim", "c", "here", status=status or {}, metadata=metadata)
        return Claim(here, "here", "c")

    return make


def _kube(claim: Claim) -> Any:
    return claim.world.kube


def test_the_properties_of_a_claim(claim: Callable[..., Claim]) -> None:
    made = claim(ALLOCATED, **OWNED, labels={"x": "y"}, annotations={"z": "0"})
    assert (made.uid, made.owner, made.labels, made.annotations) == ("u", ("Pod", "a"), {"x": "y"}, {"z": "0"})
    assert made.devices == {DEVICE}
    assert made.pods == {"a", "b"}
    assert made.requests == {"device/small"}
    assert made.devices_of("device") == {DEVICE}
    assert made.devices_of("other") == NONE
    assert made.is_protected
    assert not made.is_being_deleted


def test_a_claim_without_an_owner(claim: Callable[..., Claim]) -> None:
    made = claim()
    assert made.owner is None
    assert (made.devices, made.pods, made.is_protected) == (NONE, NONE, False)


def test_waits_that_succeed(claim: Callable[..., Claim]) -> None:
    made = claim(ALLOCATED, uid="u")
    assert made.should_be_allocated().should_be_reserved_for("b", "a").should_stay() is made
    assert claim(uid="u").should_be_deallocated().devices == NONE


@pytest.mark.parametrize("left", [ALLOCATED, {"reservedFor": [{"name": "a"}]}])
def test_a_claim_that_is_allocated_or_reserved_is_not_deallocated(claim: Callable[..., Claim], left: Any) -> None:
    with pytest.raises(NotObserved, match=r"expected resourceclaim c to be deallocated(.|\n)*reserved for: a"):
        claim(left).should_be_deallocated()


def test_a_claim_that_is_still_protected_is_not_deallocated(claim: Callable[..., Claim]) -> None:
    with pytest.raises(NotObserved, match="a pod ends only when the driver has unprepared its claims"):
        claim(finalizers=[PROTECTION]).should_be_deallocated()


def test_a_claim_that_is_not_allocated(claim: Callable[..., Claim]) -> None:
    with pytest.raises(NotObserved, match="no pod uses the claim, or no free device fits"):
        claim().should_be_allocated()


@pytest.mark.parametrize(
    ("refusal", "raised", "cause"),
    [
        (
            "2 node(s) had untolerated taint(s)",
            WaitTimeout,
            "do not tolerate the taints of the nodes: .*; the driver is not blamed",
        ),
        ("2 cannot allocate all claims", NotObserved, "likely cause: no free device fits"),
    ],
)
def test_the_pods_of_a_claim_explain_why_it_is_not_allocated(
    claim: Callable[..., Claim], refusal: str, raised: type[Exception], cause: str
) -> None:
    made = claim()
    condition = {"type": "PodScheduled", "status": "False", "message": f"0/2 nodes are available: {refusal}."}
    spec: Any = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    _kube(made).react = lambda _kube: None
    _kube(made).put("Pod", "p", "here", spec=spec, status={"conditions": [condition]})
    with pytest.raises(raised, match=cause):
        made.should_be_allocated()


def test_a_device_allocated_to_a_claim_of_others_is_not_the_drivers_fault(claim: Callable[..., Claim]) -> None:
    made = claim()
    kube = _kube(made)
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes: 2 cannot allocate all claims."}
    spec: Any = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    kube.react = lambda _kube: None
    kube.put("Pod", "p", "here", spec=spec, status={"conditions": [condition]})
    kube.put("Namespace", "team-a")
    result = {"driver": made.world.driver_file.driver, "pool": "node-1", "device": "gpu-0"}
    kube.put("ResourceClaim", "training", "team-a", status={"allocation": {"devices": {"results": [result]}}})
    with pytest.raises(WaitTimeout, match=r"claim team-a/training holds gpu-0 of node-1; the driver is not blamed"):
        made.should_be_allocated()


def test_other_pods_do_not_explain_why_a_claim_is_not_allocated(
    claim: Callable[..., Claim],
) -> None:
    made = claim()
    condition = {"type": "PodScheduled", "status": "False", "message": "2 node(s) had untolerated taint(s)"}
    _kube(made).react = lambda _kube: None
    spec: Any = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    _kube(made).put("Pod", "silent", "here", spec=spec, status={})
    made_for = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "another"}]}
    _kube(made).put("Pod", "other", "here", spec={}, status={"conditions": [condition], **made_for})
    with pytest.raises(NotObserved, match="no pod uses the claim, or no free device fits"):
        made.should_be_allocated()


def test_a_missing_or_surplus_reservation(claim: Callable[..., Claim]) -> None:
    with pytest.raises(NotObserved, match="last seen: reserved for a, b"):
        claim(ALLOCATED).should_be_reserved_for("a")
    with pytest.raises(NotObserved, match="last seen: reserved for no pod"):
        claim().should_be_reserved_for("a")


def test_a_deleted_claim_is_gone(claim: Callable[..., Claim]) -> None:
    made = claim()
    made.delete()
    made.should_be_gone()


def test_a_claim_that_is_not_removed_is_reported_with_its_finalizers(claim: Callable[..., Claim]) -> None:
    with pytest.raises(NotObserved, match=f"still there; finalizers: {PROTECTION}; reserved for: a, b"):
        claim(ALLOCATED, finalizers=[PROTECTION]).should_be_gone()


def test_a_claim_that_should_stay_is_already_gone(claim: Callable[..., Claim]) -> None:
    made = claim()
    made.delete()
    with pytest.raises(NotObserved, match="expected resourceclaim c to stay"):
        made.should_stay()


def test_a_claim_that_should_stay_is_removed(claim: Callable[..., Claim]) -> None:
    made = claim()
    _kube(made).react = lambda kube: kube.objects.pop(("ResourceClaim", "here", "c"), None)
    with pytest.raises(NotObserved, match=r"lacks the finalizer(.|\n)*there is no"):
        made.should_stay()


def test_the_status_of_a_device(claim: Callable[..., Claim]) -> None:
    status = {
        "driver": "d.example.com",
        "pool": "pool",
        "device": "gpu-0",
        "data": {"a": 1},
        "networkData": {"ips": []},
    }
    made = claim({**ALLOCATED, "devices": [{**status, "conditions": [{"type": "Ready", "status": "True"}]}]})
    assert made.should_have_condition(DEVICE, "Ready").conditions(DEVICE) == {"Ready": "True"}
    assert (made.data(DEVICE), made.network_data(DEVICE)) == ({"a": 1}, {"ips": []})
    other = Device("d.example.com", "pool", "gpu-1")
    assert (made.conditions(other), made.data(other), made.network_data(other)) == ({}, None, {})
    with pytest.raises(NotObserved, match="the driver does not write device status"):
        made.should_have_condition(DEVICE, "Ready", "False")


def test_the_devices_with_a_condition(claim: Callable[..., Claim]) -> None:
    names = ("gpu-0", "gpu-1", "gpu-2")
    results = {"allocation": {"devices": {"results": [{**RESULT, "device": name} for name in names]}}}
    status = {"gpu-0": "True", "gpu-1": "False"}
    entries = [{**RESULT, "device": n, "conditions": [{"type": "Ready", "status": s}]} for n, s in status.items()]
    made = claim({**results, "devices": entries})
    assert made.devices_with_condition("Ready") == {DEVICE}
    assert made.devices_with_condition("Seen") == NONE


def test_the_shares_of_a_claim(claim: Callable[..., Claim]) -> None:
    share = {**RESULT, "shareID": "one", "consumedCapacity": {"d.example.com/memory": "8Gi"}}
    results: Any = {"allocation": {"devices": {"results": [share, RESULT]}}}
    made = claim({**results, "devices": [{**RESULT, "shareID": "one"}, {**RESULT, "shareID": "two"}]})
    assert made.consumed_capacity("memory") == ["8Gi", "nothing"]
    assert made.share_ids == {"one"}
    assert made.share_ids_with_status == {"one", "two"}
    assert made.should_have_device_status() is made


def test_a_claim_without_device_status(claim: Callable[..., Claim]) -> None:
    made = claim(ALLOCATED)
    assert (made.share_ids, made.share_ids_with_status, made.configured_for) == (NONE, NONE, NONE)
    with pytest.raises(NotObserved, match=r"status\.devices is empty"):
        made.should_have_device_status()


@pytest.mark.parametrize(
    "status",
    [{"conditions": [SEEN, {"type": "Ready", "status": "True"}]}, {"data": {"a": 1}}, {"networkData": {"ips": ["1"]}}],
)
def test_a_device_has_more_status_than_one_condition(claim: Callable[..., Claim], status: dict[str, Any]) -> None:
    made = claim({"devices": [{**RESULT, "conditions": [SEEN], **status}]})
    assert made.should_have_more_status_for(DEVICE, than="Seen") is made


@pytest.mark.parametrize(
    ("status", "why"), [([{**RESULT, "conditions": [SEEN]}], "has only the condition Seen"), ([], "has no entry")]
)
def test_a_device_has_no_more_status_than_one_condition(
    claim: Callable[..., Claim], status: list[Any], why: str
) -> None:
    with pytest.raises(NotObserved, match=why):
        claim({"devices": status}).should_have_more_status_for(DEVICE, than="Seen")


def test_a_driver_may_report_no_condition(claim: Callable[..., Claim]) -> None:
    made = claim({**ALLOCATED, "devices": [{**RESULT, "conditions": None, "data": {"a": 1}}]})
    assert made.conditions(DEVICE) == {}
    assert made.should_have_more_status_for(DEVICE, than="Seen") is made
    with pytest.raises(NotObserved, match=r"conditions of \S+: none"):
        made.should_have_condition(DEVICE, "Ready")


def test_the_status_of_a_device_is_cleared(claim: Callable[..., Claim]) -> None:
    made = claim({"devices": [{**RESULT, "conditions": [{"type": "Failed", "status": "True"}]}]})
    assert made.should_have_no_status_for(Device("d.example.com", "pool", "gpu-1")) is made
    with pytest.raises(NotObserved, match=r"it was not deallocated(.|\n)*still there; conditions of \S+: Failed=True"):
        made.should_have_no_status_for(DEVICE)


def test_the_parameter_for_of_configurations(claim: Callable[..., Claim]) -> None:
    entries = [{"opaque": {"parameters": {"for": name}}} for name in ("any", "common")]
    assert claim({"allocation": {"devices": {"config": entries}}}).configured_for == {"any", "common"}


def test_a_claim_is_deleted_despite_its_finalizers(claim: Callable[..., Claim]) -> None:
    found = claim(ALLOCATED, **OWNED)
    kube: Any = found.world.kube
    kube.finalizers["c"] = 1  # so that it is still there after it was deleted
    found.delete_despite_finalizers()
    assert "finalizers" not in kube.objects["ResourceClaim", "here", "c"]["metadata"]


def test_the_sources_of_configurations(claim: Callable[..., Claim]) -> None:
    assert claim(ALLOCATED).configuration_sources == ()
    config = [{"source": "FromClass"}, {"source": "FromClaim"}]
    assert claim({"allocation": {"devices": {"config": config}}}).configuration_sources == ("FromClass", "FromClaim")


def test_the_settings_of_configurations(claim: Callable[..., Claim]) -> None:
    known = claim().world.driver_file.configuration
    assert known
    settings = known.settings
    status = (settings["other"].parameters, {"kind": "Unknown"}, settings["one"].parameters)
    config = [{"source": "FromClaim", "opaque": {"parameters": each}} for each in status]
    found = claim({"allocation": {"devices": {"config": config}}})
    assert found.configuration_settings == ("other", "something else", "one")


def test_the_requested_counts(claim: Callable[..., Claim]) -> None:
    made = claim()
    requests = [{"name": f"r{count}", "exactly": {"count": count}} for count in (1, 2)]
    _kube(made).put("ResourceClaim", "c", "here", spec={"devices": {"requests": requests}})
    assert made.requested_counts == (1, 2)


def test_the_status_of_a_device_without_its_names_in_containers(claim: Callable[..., Claim]) -> None:
    place = {"driver": "d.example.com", "pool": "pool", "device": "gpu-0"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Prepared",
        "message": "as good as new",
        "observedGeneration": 1,
    }
    network = {"interfaceName": "net1", "ips": ["10.9.8.7/24"], "hardwareAddress": "02:00:5e:10:00:01"}
    entry = {**place, "conditions": [ready], "data": {"uuid": "GPU-1"}, "networkData": network}
    assert claim({"devices": [entry]}).status_of(DEVICE) == {
        "texts": [("Prepared", "as good as new")],
        "data": {"uuid": "GPU-1"},
        "address": "02:00:5e:10:00:01",
    }
    assert claim({"devices": [place]}).status_of(DEVICE) == {"texts": [], "data": None, "address": None}
