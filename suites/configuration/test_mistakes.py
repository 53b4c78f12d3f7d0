"""Drivers refuse invalid configuration without affecting other claims."""

import pytest

from testbed.conformance import E2E, MUST, SHOULD, requirement

DOCS = (
    "API reference: ResourceClaim v1 resource.k8s.io, OpaqueDeviceConfiguration; KEP-4381, section NodePrepareResource"
)


@requirement(
    "CONFIG-020",
    "The driver must refuse each attempt to prepare a claim with invalid configuration, and the pod must not run.",
    level=MUST,
    tier=E2E,
    features=("invalid-configuration",),
    source=DOCS,
    covers=("W21", "G19"),
    mutants=("swallows-config-errors", "refuses-once"),
)
def test_an_invalid_configuration_is_refused(scenario):
    scenario.apply("configuration/invalid.yaml")
    pod = scenario.pod("pod").should_fail_to_prepare("wrong")

    pod.should_fail_to_prepare_again("wrong").should_stay_pending()
    pod.delete().should_be_gone()

    scenario.apply("basic/claim-by-name.yaml")
    assert scenario.pod("pod").should_run().seen_devices == scenario.claim("my-device").devices


@requirement(
    "CONFIG-021",
    "The driver must refuse each attempt to prepare a claim whose DeviceClass has invalid configuration, and the pod must not run.",
    level=MUST,
    tier=E2E,
    features=("invalid-configuration",),
    source=DOCS,
    covers=("W21",),
    mutants=("swallows-config-errors", "refuses-once"),
)
def test_the_invalid_configuration_is_in_the_class(scenario):
    scenario.apply("configuration/invalid-in-class.yaml")
    pod = scenario.pod("pod").should_fail_to_prepare("plain")

    pod.should_fail_to_prepare_again("plain").should_stay_pending()
    pod.delete().should_be_gone()

    scenario.apply("basic/claim-by-name.yaml")
    assert scenario.pod("pod").should_run().seen_devices == scenario.claim("my-device").devices


@requirement(
    "CONFIG-022",
    "Invalid configuration in one claim must not keep the driver from preparing another claim on the same node.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("configuration", "invalid-configuration"),
    source=DOCS,
    covers=("W16", "G11"),
    mutants=("swallows-config-errors",),
)
def test_an_invalid_configuration_does_not_affect_other_pods(scenario):
    scenario.apply("configuration/invalid.yaml")
    pod = scenario.pod("pod").should_fail_to_prepare("wrong")

    scenario.apply("configuration/good.yaml", node=pod.node)

    assert scenario.pod("good").should_run().container("workload").settings == {"one"}


@requirement(
    "CONFIG-023",
    "When the pod of a claim with invalid configuration has ended, the driver must be able to prepare its device for another claim.",
    level=MUST,
    tier=E2E,
    exclusive=True,  # when one of two claims with the same device ends, the scheduler takes the device for free
    features=("invalid-configuration",),
    given=("unshared", "alone"),
    source=DOCS,
    covers=("W16", "W26"),
    mutants=("refused-claims-stay-prepared",),
    counts=(1,),
)
def test_an_invalid_configuration_does_not_keep_the_device(scenario):
    scenario.apply("configuration/invalid.yaml")
    pod = scenario.pod("pod").should_fail_to_prepare("wrong")
    (device,), node = pod.devices, pod.node
    scenario.apply("configuration/next-claim.yaml")
    scenario.apply_status("basic/allocation.yaml", claim="next", node=node, pool=device.pool, name=device.name)

    pod.delete().should_be_gone()

    scenario.apply("configuration/next.yaml", node=node)
    scenario.claim("next").should_be_reserved_for("next")

    assert scenario.pod("next").trigger_sync().should_run().seen_devices == {device}


@requirement(
    "CONFIG-024",
    "When the driver refuses invalid configuration, its error should name the invalid field.",
    level=SHOULD,
    tier=E2E,
    features=("invalid-configuration",),
    source=DOCS,
    covers=("W21", "G19"),
    mutants=("hides-the-invalid-field", "swallows-config-errors"),
)
def test_the_error_names_the_invalid_field(scenario, driver):
    scenario.apply("configuration/invalid.yaml")

    scenario.pod("pod").should_fail_to_prepare("wrong", because=driver.invalid_field)


@requirement(
    "CONFIG-025",
    "The driver must refuse invalid configuration for a request with alternatives, or for the chosen alternative, "
    "and the pod must not run.",
    level=MUST,
    tier=E2E,
    devices=2,
    features=("invalid-configuration",),
    gates=("DRAPrioritizedList",),
    given=("unshared",),
    source="API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration.requests",
    mutants=("ignores-config-of-alternatives", "swallows-config-errors"),
)
@pytest.mark.parametrize("request_name", ["device/common", "device"], ids=["alternative", "request"])
def test_an_invalid_configuration_of_an_alternative_is_refused(scenario, driver, request_name):
    scenario.apply(
        "configuration/alternatives.yaml", name="right", request=request_name, addressee="nobody.example.com"
    )
    right = scenario.pod("right").should_run()
    assert right.seen_devices == right.devices
    right.delete().should_be_gone()

    scenario.apply("configuration/alternatives.yaml", name="wrong", request=request_name, addressee=driver.name)
    wrong = scenario.pod("wrong").should_fail_to_prepare("wrong")
    wrong.should_fail_to_prepare_again("wrong").should_stay_pending()
