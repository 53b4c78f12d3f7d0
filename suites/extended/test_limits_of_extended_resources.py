"""Names and amounts of extended resources that cannot be, and quotas on them."""

import pytest

from testbed.conformance import CLUSTER, E2E, MUST, requirement


@requirement(
    "EXT-013",
    "An amount that is no whole number, or of which request and limit differ, is refused, with the reason.",
    level=MUST,
    tier=E2E,
    source="kubernetes.io: Resource Management for Pods and Containers, extended resources",
    about=CLUSTER,
    mutants=("amounts-dropped",),
)
@pytest.mark.parametrize(
    ("asked", "limit", "words"),
    [("1500m", "1500m", "must be an integer"), (1, 2, "must be equal to example.com/")],
    ids=["fraction", "different"],
)
def test_an_amount_that_cannot_be(scenario, asked, limit, words):
    assert words in scenario.should_be_refused("extended/wrong-amounts.yaml", asked=asked, limit=limit)


@requirement(
    "EXT-014",
    "A class with a name that no extended resource can have is refused.",
    level=MUST,
    tier=E2E,
    source="API reference: DeviceClass v1 resource.k8s.io, extendedResourceName",
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E12",),
    mutants=("resource-names-dropped",),
)
@pytest.mark.parametrize("resource", ["kubernetes.io/gpu", "gpu", "example.com/a/b"], ids=["reserved", "plain", "path"])
def test_a_name_that_cannot_be(scenario, resource):
    assert "spec.extendedResourceName" in scenario.should_be_refused(
        "extended/class-with-a-wrong-name.yaml", resource=resource
    )


@requirement(
    "EXT-015",
    "A quota on the extended resource is obeyed: pods together may not ask for more.",
    level=MUST,
    tier=E2E,
    source="kubernetes.io: Resource Quotas, quota for extended resources",
    gates=("DRAExtendedResource",),
    about=CLUSTER,
    covers=("E1",),
    mutants=("quotas-lifted",),
)
def test_a_quota(scenario):
    limited = f"requests.example.com/{scenario.namespace}"
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/quota.yaml")
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("extended/pod.yaml", count=1)
    scenario.quota("quota").should_count(limited, used="1")

    assert "exceeded quota: quota" in scenario.should_be_refused("extended/second-pod.yaml")


@requirement(
    "EXT-016",
    "A pod that asks for a resource with a name that no extended resource can have is refused, with the reason.",
    level=MUST,
    tier=E2E,
    source="kubernetes.io: Resource Management for Pods and Containers, extended resources",
    about=CLUSTER,
    covers=("E12",),
    mutants=("amounts-dropped",),
)
@pytest.mark.parametrize(
    ("resource", "words"),
    [("gpu", "must be a standard resource"), ("example.com/a/b", "doesn't follow extended resource name standard")],
    ids=["plain", "path"],
)
def test_a_pod_names_a_resource_that_cannot_be(scenario, resource, words):
    assert words in scenario.should_be_refused("extended/pod-with-a-wrong-name.yaml", resource=resource)


@requirement(
    "EXT-017",
    "Quotas on claims and on devices of the class are obeyed as well: a pod whose claim would be one too many waits, and is told so.",
    level=MUST,
    tier=E2E,
    source="kubernetes.io: Resource Quotas, quota for extended resources",
    gates=("DRAExtendedResource",),
    kubernetes="1.35",
    about=CLUSTER,
    covers=("E1",),
    mutants=("quotas-lifted",),
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
def test_a_quota_on_what_the_scheduler_makes(scenario, name):
    limited = name.format(scenario.namespace)
    scenario.apply("extended/class.yaml")
    scenario.apply("extended/quota-on.yaml", limited=limited, most=0)
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("extended/pod.yaml", count=1)
    pod = scenario.pod("pod").should_be_told("FailedScheduling", "exceeded quota: quota").should_stay_unscheduled()

    scenario.apply("extended/quota-on.yaml", limited=limited, most=1)
    pod.should_run()

    scenario.quota("quota").should_count(limited, used="1")
