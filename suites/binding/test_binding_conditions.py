"""Binding conditions: the scheduler binds a pod only when its device is ready. The tests set the conditions themselves."""

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement

DOCS = "Kubernetes documentation: Dynamic Resource Allocation, section Device binding conditions"
KEP = "KEP-5007, DRA device binding conditions"


@requirement(
    "BIND-001",
    "While a binding condition of its allocated device is not met, a pod must stay unscheduled and get a BindingConditionsPending event.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source=DOCS,
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    mutants=("binding-conditions-missing",),
)
def test_a_pod_waits_for_its_device(scenario):
    scenario.apply("binding/pod.yaml")
    claim = scenario.claim("my-device").should_be_allocated()
    pod = scenario.pod("pod").should_stay_unscheduled()
    pod.should_have_event(messages.BINDING_CONDITIONS_PENDING, messages.WAITING_FOR_BINDING_CONDITIONS)

    assert len(claim.devices) == 1


@requirement(
    "BIND-002",
    "A pod must run and see its device once all binding conditions of the device are true, and not before.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source=DOCS,
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    mutants=(
        "no-env",
        "share-one-device",
        "binding-conditions-missing",
        "one-binding-condition",
    ),
    covers=("G5",),
)
def test_a_pod_runs_when_its_device_is_attached(scenario, driver):
    scenario.apply("binding/pod.yaml")
    (device,) = scenario.claim("my-device").should_be_allocated().devices
    *others, last = driver.binding_conditions(device)

    scenario.apply_status("binding/conditions.yaml", device=device, conditions=others, status=True)
    pod = scenario.pod("pod").should_stay_unbound()
    scenario.apply_status("binding/conditions.yaml", device=device, conditions=[*others, last], status=True)

    assert pod.should_run().seen_devices == {device}


@requirement(
    "BIND-003",
    "A binding condition with status False must not count as met: the pod must stay unscheduled.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source=KEP,
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    about=CLUSTER,
    mutants=("conditions-come-true",),
)
def test_a_pod_waits_while_a_condition_is_false(scenario):
    scenario.apply("binding/pod.yaml")
    claim = scenario.claim("my-device").should_be_allocated()
    (device,), (result,) = claim.devices, claim.allocation_results

    conditions = result.get("bindingConditions", ["none"])
    scenario.apply_status("binding/conditions.yaml", device=device, conditions=conditions, status=False)

    assert scenario.pod("pod").should_stay_unbound().devices == {device}
    scenario.apply_status("binding/conditions.yaml", device=device, conditions=conditions, status=True)
    scenario.pod("pod").should_be_scheduled()


@requirement(
    "BIND-004",
    "The allocation must contain the binding conditions and binding failure conditions that the driver publishes for the device.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceRequestAllocationResult.bindingConditions",
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    about=CLUSTER,
    mutants=("one-binding-condition",),
)
def test_the_allocation_copies_the_binding_conditions(scenario, driver):
    scenario.apply("binding/pod.yaml")
    claim = scenario.claim("my-device").should_be_allocated()
    (device,), (result,) = claim.devices, claim.allocation_results

    assert result.get("bindingConditions") == driver.binding_conditions(device)
    assert result.get("bindingFailureConditions") == driver.binding_failure_conditions(device)


@requirement(
    "BIND-005",
    "When a binding failure condition is true, the pod must get a FailedScheduling event, and its claim must be allocated again.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source=KEP,
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    mutants=("binding-conditions-missing",),
)
def test_the_claim_is_allocated_again_when_attaching_fails(scenario):
    scenario.apply("binding/pod.yaml")
    claim = scenario.claim("my-device").should_be_allocated()
    (device,), (result,) = claim.devices, claim.allocation_results

    condition = result.get("bindingFailureConditions", ["none"])[0]
    scenario.apply_status("binding/conditions.yaml", device=device, conditions=[condition], status=True)
    scenario.pod("pod").should_have_event(messages.FAILED_SCHEDULING, messages.BINDING_FAILED)

    claim.should_have_no_status_for(device)

    assert len(claim.should_be_allocated().devices) == 1


@requirement(
    "BIND-006",
    "When a pod is deleted while it waits for binding conditions, its claim must be deallocated.",
    level=MUST,
    tier=E2E,
    only_user_of="binding",
    source=KEP,
    features=("binding",),
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    mutants=("binding-conditions-missing",),
)
def test_a_pod_is_deleted_while_it_waits_for_its_device(scenario):
    scenario.apply("binding/pod.yaml")
    claim = scenario.claim("my-device").should_be_allocated()
    pod = scenario.pod("pod").should_stay_unscheduled()

    pod.delete().should_be_gone()

    claim.should_be_deallocated()
