"""Resource quotas limit how many claims and devices a namespace may have."""

from testbed.conformance import CLUSTER, E2E, MUST, requirement

DOCS = "kubernetes.io: Resource Quotas, object count and DeviceClass quota"


@requirement(
    "QUOTA-001",
    "A quota on ResourceClaims counts them as they come and go; a claim more than it allows is refused, with the reason.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("A7", "A8"),
    about=CLUSTER,
    mutants=("quotas-lifted",),
)
def test_a_quota_on_claims(scenario):
    scenario.apply("quota/one-claim.yaml")
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="first", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")

    assert "exceeded quota: quota" in scenario.should_be_refused("quota/claim.yaml", name="second", count=1)

    scenario.claim("first").delete()
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="second", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")


@requirement(
    "QUOTA-002",
    "A quota on the devices of a DeviceClass is obeyed: claims together may not ask for more.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("quotas-lifted",),
)
def test_a_quota_on_devices_of_a_class(scenario, driver):
    limited = f"{driver.device_class}.deviceclass.resource.k8s.io/devices"
    scenario.apply("quota/two-devices-of-the-class.yaml")
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("quota/claim.yaml", name="first", count=2)
    scenario.quota("quota").should_count(limited, used="2")

    assert "exceeded quota: quota" in scenario.should_be_refused("quota/claim.yaml", name="second", count=1)


@requirement(
    "QUOTA-003",
    "A claim that a quota keeps a template from making is told to its pod, which waits.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("quotas-lifted",),
)
def test_a_quota_on_generated_claims(scenario):
    scenario.apply("quota/one-claim.yaml")
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="first", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")

    scenario.apply("quota/pod.yaml")
    pod = scenario.pod("pod").should_be_told("FailedResourceClaimCreation", "exceeded quota: quota")

    assert pod.should_stay_unscheduled().devices == frozenset()
