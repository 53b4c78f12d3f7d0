"""PodResources: the kubelet's API for agents that monitor which devices a container uses."""

from testbed.conformance import CLUSTER, E2E, MAY, MUST, NONE, Capability, requirement

DOCS = (
    "Kubernetes documentation: Device Plugins, section Monitoring device plugin resources; "
    "k8s.io/kubelet: pkg/apis/podresources/v1/api.proto"
)


@requirement(
    "MONITOR-001",
    "PodResources List must report the claim of a pod, with the allocated device if the driver names devices in its answer, "
    "and no claim for a pod without claims.",
    level=MUST,
    tier=E2E,
    needs=(Capability.DRIVER_SOCKET,),
    source=DOCS,
    gates=("KubeletPodResourcesDynamicResources",),
    covers=("G18",),
    mutants=("answer-with-another-device",),
)
def test_list_names_the_devices_of_a_pod(scenario, kubelets):
    scenario.apply("monitor/pods.yaml")
    pod, plain = scenario.pods("pod", "plain").should_run()
    claim = pod.claims["device"]

    assert kubelets.list_claims(pod) in ({claim.name: claim.devices}, {claim.name: NONE})
    assert kubelets.lists(plain)
    assert kubelets.list_claims(plain) == {}


@requirement(
    "MONITOR-002",
    "PodResources Get must report the claim of a pod, with the allocated device if the driver names devices in its answer.",
    level=MUST,
    tier=E2E,
    needs=(Capability.DRIVER_SOCKET,),
    source=DOCS,
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    covers=("G18",),
    mutants=("answer-with-another-device",),
)
def test_get_names_the_devices_of_a_pod(scenario, kubelets):
    scenario.apply("monitor/pods.yaml")
    pod = scenario.pod("pod").should_run()
    claim = pod.claims["device"]

    assert kubelets.get_claims(pod) in ({claim.name: claim.devices}, {claim.name: NONE})


@requirement(
    "MONITOR-003",
    "PodResources Get must report a shared claim for each pod that uses it, with its device if the driver names devices in its answer.",
    level=MUST,
    tier=E2E,
    needs=(Capability.DRIVER_SOCKET,),
    source=DOCS,
    features=("shared-claims",),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    covers=("G18",),
    mutants=("answer-with-another-device",),
)
def test_a_shared_claim_is_named_with_each_pod(scenario, kubelets):
    scenario.apply("monitor/shared.yaml")
    first, second = scenario.pods("first", "second").should_run()
    devices = scenario.claim("shared").devices

    assert kubelets.get_claims(first) in ({"shared": devices}, {"shared": NONE})
    assert kubelets.get_claims(second) in ({"shared": devices}, {"shared": NONE})


@requirement(
    "MONITOR-004",
    "PodResources Get must report every device of a claim with several devices if the driver names devices in its answer.",
    level=MUST,
    tier=E2E,
    devices=2,
    needs=(Capability.DRIVER_SOCKET,),
    source=DOCS,
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    given=("unshared",),
    covers=("G18",),
    mutants=("first-device-only",),
    counts=(2,),
)
def test_every_device_of_a_claim_is_named(scenario, kubelets):
    scenario.apply("monitor/two-devices.yaml")
    pod = scenario.pod("pod").should_run()
    claim = pod.claims["device"]

    assert kubelets.get_claims(pod) in ({claim.name: claim.devices}, {claim.name: NONE})
    assert len(claim.devices) == 2


@requirement(
    "MONITOR-005",
    "PodResources List must not report the claim of a pod that has ended.",
    level=MUST,
    tier=E2E,
    needs=(Capability.DRIVER_SOCKET,),
    source=DOCS,
    gates=("KubeletPodResourcesDynamicResources",),
    covers=("G18",),
    about=CLUSTER,
    mutants=("pods-lose-their-claims",),
)
def test_a_finished_pod_is_not_listed(scenario, kubelets, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()
    assert kubelets.list_claims(pod)

    pod.delete().should_be_gone()

    kubelets.should_list_no_claims(pod, node)


@requirement(
    "MONITOR-006",
    "A driver may name each allocated device in its answer to NodePrepareResources, so that agents find the device in PodResources.",
    level=MAY,
    tier=E2E,
    needs=(Capability.DRIVER_SOCKET,),
    source="k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, PrepareResult.Devices: the empty slice is also valid",
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    mutants=("answer-without-devices", "answer-with-another-device"),
)
def test_the_driver_names_the_devices_of_a_claim(scenario, kubelets):
    scenario.apply("monitor/pods.yaml")
    pod = scenario.pod("pod").should_run()
    claim = pod.claims["device"]

    assert kubelets.get_claims(pod) == {claim.name: claim.devices}
