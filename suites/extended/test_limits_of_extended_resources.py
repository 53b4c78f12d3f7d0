"""Invalid names and amounts of extended resources, and quotas on them."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, messages, requirement


@requirement(
    "EXT-013",
    "The API server must reject a pod that requests a fractional amount of an extended resource, "
    "or whose request and limit differ, and say why.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Resource Management for Pods and Containers, section Extended resources",
    about=CLUSTER,
    mutants=("amounts-dropped",),
)
@pytest.mark.parametrize(
    ("asked", "limit", "words"),
    [("1500m", "1500m", messages.NOT_INTEGER), (1, 2, "must be equal to example.com/")],
    ids=["fraction", "different"],
)
def test_an_invalid_quantity_is_refused(scenario, asked, limit, words):
    assert words in scenario.should_be_refused("extended/wrong-amounts.yaml", asked=asked, limit=limit)


@requirement(
    "EXT-014",
    "The API server must reject a DeviceClass with an invalid extendedResourceName, and name the field.",
    level=MUST,
    tier=E2E,
    source="API reference: DeviceClass v1 resource.k8s.io, DeviceClassSpec.extendedResourceName",
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E12",),
    mutants=("resource-names-dropped",),
)
@pytest.mark.parametrize("resource", ["kubernetes.io/gpu", "gpu", "example.com/a/b"], ids=["reserved", "plain", "path"])
def test_an_invalid_resource_name_is_refused(scenario, resource):
    assert "spec.extendedResourceName" in scenario.should_be_refused(
        "extended/class-with-a-wrong-name.yaml", resource=resource
    )


@requirement(
    "EXT-015",
    "The API server must reject a pod that would exceed a ResourceQuota on an extended resource.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Resource Quotas, section Quota for extended resources",
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E1",),
    mutants=("quotas-lifted",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
def test_a_quota_on_extended_resources(scenario):
    limited = f"requests.example.com/{scenario.namespace}"
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/quota.yaml")
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("extended/pod.yaml", count=1)
    scenario.quota("quota").should_count(limited, used="1")

    assert messages.EXCEEDED_QUOTA in scenario.should_be_refused("extended/second-pod.yaml")


@requirement(
    "EXT-016",
    "The API server must reject a pod that requests a resource whose name is not a valid extended resource name, and say why.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Resource Management for Pods and Containers, section Extended resources",
    about=CLUSTER,
    covers=("E12",),
    mutants=("amounts-dropped",),
)
@pytest.mark.parametrize(
    ("resource", "words"),
    [("gpu", messages.NOT_STANDARD_RESOURCE), ("example.com/a/b", messages.NOT_EXTENDED_RESOURCE_NAME)],
    ids=["plain", "path"],
)
def test_a_pod_with_an_invalid_resource_name_is_refused(scenario, resource, words):
    assert words in scenario.should_be_refused("extended/pod-with-a-wrong-name.yaml", resource=resource)


@requirement(
    "EXT-017",
    "A pod must wait, with an event that says why, while a quota on ResourceClaims or on devices of the class does not "
    "allow the ResourceClaim for its extended resource. Once the quota allows it, the pod must run.",
    level=MUST,
    tier=E2E,
    source="Kubernetes documentation: Resource Quotas, section Quota for extended resources",
    gates=("DRAExtendedResource",),
    kubernetes="1.35",
    about=CLUSTER,
    covers=("E1",),
    mutants=("quotas-lifted",),
    given=("alone", "unconfigured"),
    counts=(1,),
)
@pytest.mark.parametrize(
    "name",
    [
        "count/resourceclaims.resource.k8s.io",
        "{}.deviceclass.resource.k8s.io/devices",
        "requests.deviceclass.resource.kubernetes.io/{}",
    ],
    ids=["claims", "devices-of-the-class", "implicit-name"],
)
def test_a_quota_on_claims_that_the_scheduler_makes(scenario, name):
    limited = name.format(scenario.namespace)
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/quota-on.yaml", limited=limited, most=0)
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("extended/pod.yaml", count=1)
    pod = (
        scenario.pod("pod")
        .should_have_event(messages.FAILED_SCHEDULING, messages.EXCEEDED_QUOTA)
        .should_stay_unscheduled()
    )

    scenario.apply("extended/quota-on.yaml", limited=limited, most=1)
    pod.should_be_scheduled()

    scenario.quota("quota").should_count(limited, used="1")
