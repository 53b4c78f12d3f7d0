"""ResourceQuotas on ResourceClaims and on devices of a DeviceClass."""

from testbed.conformance import CLUSTER, E2E, MUST, NONE, messages, requirement

DOCS = "Kubernetes documentation: Resource Quotas; KEP-4381, section ResourceQuota"


@requirement(
    "QUOTA-001",
    "A ResourceQuota must count ResourceClaims as they come and go, and the API server must reject a claim that exceeds it.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    covers=("A7", "A8"),
    about=CLUSTER,
    mutants=("quotas-lifted",),
    counts=(1,),
)
def test_a_quota_on_claims(scenario):
    scenario.apply("quota/one-claim.yaml")
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="first", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")

    assert messages.EXCEEDED_QUOTA in scenario.should_be_refused("quota/claim.yaml", name="second", count=1)

    scenario.claim("first").delete()
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="second", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")


@requirement(
    "QUOTA-002",
    "The API server must reject a ResourceClaim that would exceed a ResourceQuota on the devices of a DeviceClass.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("quotas-lifted",),
    counts=(1, 2),
)
def test_a_quota_on_devices_of_a_class(scenario, driver):
    limited = f"{driver.device_class}.deviceclass.resource.k8s.io/devices"
    scenario.apply("quota/two-devices-of-the-class.yaml")
    scenario.quota("quota").should_count(limited, used="0")
    scenario.apply("quota/claim.yaml", name="first", count=2)
    scenario.quota("quota").should_count(limited, used="2")

    assert messages.EXCEEDED_QUOTA in scenario.should_be_refused("quota/claim.yaml", name="second", count=1)


@requirement(
    "QUOTA-003",
    "If a ResourceQuota does not allow a pod's generated ResourceClaim, the pod must wait and get an event that says why.",
    level=MUST,
    tier=E2E,
    source=DOCS,
    about=CLUSTER,
    mutants=("quotas-lifted",),
    counts=(1, 2),
)
def test_a_quota_on_generated_claims(scenario):
    scenario.apply("quota/one-claim.yaml")
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="0")
    scenario.apply("quota/claim.yaml", name="first", count=1)
    scenario.quota("quota").should_count("count/resourceclaims.resource.k8s.io", used="1")

    scenario.apply("quota/pod.yaml")
    pod = scenario.pod("pod").should_have_event(messages.FAILED_CLAIM_CREATION, messages.EXCEEDED_QUOTA)

    assert pod.should_stay_unscheduled().devices == NONE
