"""What CDI adds to containers with a claim, and the CDI spec files on their node."""

from testbed.conformance import E2E, MUST, NONE, SHOULD, Capability, requirement

POD = "API reference: Pod v1 core, ResourceRequirements.claims"
CDI = "Container Device Interface: SPEC.md in github.com/cncf-tags/container-device-interface"
DRA = "k8s.io/kubelet: pkg/apis/dra/v1/api.proto, Device.cdi_device_ids"


@requirement(
    "CDI-001",
    "The driver should add environment variables, mounts or device nodes to containers that refer to a "
    "claim, remove none, and not change other containers.",
    level=SHOULD,
    tier=E2E,
    source=POD,
    features=("cdi", "per-container"),
    covers=("G14", "G16"),
    mutants=("answer-without-cdi-ids",),
)
def test_nothing_leaks_to_a_container_without_the_claim(scenario):
    scenario.apply("basic/with-and-without.yaml")
    pod = scenario.pod("pod").should_run()
    with_claim, without = pod.containers("with", "without")
    scenario.apply("cdi/plain-on-a-node.yaml", node=pod.node)
    plain = scenario.pod("plain").should_run().container("plain")

    assert without.environment == plain.environment
    assert with_claim.environment - plain.environment, "the claim added nothing to the container"
    assert with_claim.environment_names >= plain.environment_names


@requirement(
    "CDI-002",
    "A container that refers to a whole claim should get the environment variables, mounts and device nodes of all its "
    "requests. Containers with different requests should differ.",
    level=SHOULD,
    tier=E2E,
    devices=2,
    source=POD,
    features=("cdi", "per-container", "one-request", "shared-by-containers"),
    given=("unshared",),
    covers=("P4", "G16"),
    mutants=("answer-without-cdi-ids",),
)
def test_a_container_gets_what_its_requests_add(scenario):
    scenario.apply("basic/whole-claim-and-requests.yaml")
    both, left, right = scenario.pod("pod").should_run().containers("both", "only-left", "only-right")

    assert left.environment != right.environment
    assert both.environment >= left.environment | right.environment


@requirement(
    "CDI-003",
    "A restarted container must have the same environment variables, mounts and device nodes from its claim as before the restart.",
    level=MUST,
    tier=E2E,
    source=CDI,
    covers=("G15",),
    mutants=("cdi-file-is-lost", "cdi-file-is-replaced"),
)
def test_a_restarted_container_has_the_same_environment(scenario, node):
    scenario.apply("basic/pod-on-a-node.yaml", node=node)
    container = scenario.pod("pod").should_run().should_stay_running().container("workload")
    scenario.apply("cdi/plain-on-a-node.yaml", node=node)
    plain = scenario.pod("plain").should_run().container("plain")
    before = container.additions_to(plain)

    assert container.restart().environment - plain.environment == before


@requirement(
    "CDI-004",
    "A sidecar with a claim should get the same environment variables, mounts and device nodes as other "
    "containers with that claim, and more than containers without it.",
    level=SHOULD,
    tier=E2E,
    source=POD,
    features=("cdi", "per-container", "shared-by-containers"),
    covers=("L14", "G15"),
    mutants=("answer-without-cdi-ids",),
)
def test_a_sidecar_has_the_same_environment(scenario):
    scenario.apply("cdi/sidecar.yaml")
    sidecar, workload, without = scenario.pod("pod").should_run().containers("sidecar", "workload", "without")

    assert sidecar.environment == workload.environment
    assert sidecar.environment - without.environment, "the claim added nothing to the container"
    assert sidecar.environment_names >= without.environment_names


@requirement(
    "CDI-005",
    "The driver should return CDI device IDs for a prepared claim, and define each of them in a CDI spec file on the node.",
    level=SHOULD,
    tier=E2E,
    source=DRA,
    features=("cdi",),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    needs=(Capability.DRIVER_SOCKET, Capability.RUN_ON_NODE),
    covers=("W11", "G14"),
    mutants=("answer-without-cdi-ids",),
)
def test_cdi_ids_are_defined_on_the_node(scenario, node, kubelets):
    scenario.apply("cdi/pod-on-a-node.yaml", name="first", node=node)
    pod = scenario.pod("first").should_run()

    assert kubelets.cdi_definitions(pod), "the kubelet got no CDI ID from the driver"


@requirement(
    "CDI-006",
    "The driver must not use one CDI device ID for two claims, unless the definition of the ID stays the same "
    "until after both claims are unprepared.",
    level=MUST,
    tier=E2E,
    devices=2,
    exclusive=True,
    source="k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, DRAPlugin.PrepareResourceClaims",
    features=("cdi",),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    given=("unshared",),
    needs=(Capability.DRIVER_SOCKET, Capability.RUN_ON_NODE),
    covers=("W11", "G14"),
    mutants=("reuse-cdi-names", "one-growing-cdi-file"),
)
def test_two_claims_have_no_cdi_id_in_common(scenario, node, kubelets):
    scenario.apply("cdi/pod-on-a-node.yaml", name="first", node=node)
    before = kubelets.cdi_definitions(scenario.pod("first").should_run())
    scenario.apply("cdi/pod-on-a-node.yaml", name="second", node=node)
    common_ids = kubelets.common_cdi_ids(scenario.pod("second").should_run(), before)

    scenario.pods("first", "second").delete().should_be_gone()

    # An ID that was defined for one claim is removed with the claim.
    assert common_ids - kubelets.ids_defined_as(before, node) == NONE


@requirement(
    "CDI-007",
    "When a pod with a claim has ended, the driver should leave the node with the same CDI spec files as before, "
    "and with the same definitions in them.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,
    source="KEP-4381, section NodeUnprepareResources",
    needs=(Capability.RUN_ON_NODE,),
    covers=("G14", "W25"),
    mutants=("leaves-cdi-files", "one-growing-cdi-file"),
)
def test_no_cdi_file_is_left_when_the_pod_has_ended(scenario, node, kubelets):
    before = kubelets.cdi_content(node)
    scenario.apply("basic/pod-on-a-node.yaml", node=node)

    scenario.pod("pod").should_run().delete().should_be_gone()

    kubelets.should_have_cdi_content(node, before)


@requirement(
    "CDI-008",
    "The driver should not reuse the CDI device ID of an unprepared claim with a different definition.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,
    source="k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, DRAPlugin.PrepareResourceClaims",
    features=("cdi", "configuration", "identity", "two-configurations"),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    given=("local", "one-class"),
    needs=(Capability.DRIVER_SOCKET, Capability.RUN_ON_NODE),
    covers=("W11", "G14"),
    mutants=("cdi-names-of-devices",),
    counts=(1,),
)
def test_a_cdi_id_is_not_reused_with_another_definition(scenario, driver, node, kubelets):
    wanted = driver.identity(max(driver.devices_on(node)))
    scenario.apply("cdi/configured-device.yaml", name="first", wanted=wanted)
    first = scenario.pod("first").should_run()
    before = kubelets.cdi_definitions(first)
    first.delete().should_be_gone()

    scenario.apply("cdi/configured-device.yaml", name="second", wanted=wanted)
    after = kubelets.cdi_definitions(scenario.pod("second").should_run())

    # A driver may use one permanent ID for each device, if its definition never changes.
    changed_ids = {each for each in before.keys() & after.keys() if before[each] != after[each]}
    assert changed_ids == NONE
    assert before
    assert after


@requirement(
    "CDI-009",
    "The driver should define the CDI device ID of a device in the same way for each claim that uses the device, "
    "or use a different ID for each claim.",
    level=SHOULD,
    tier=E2E,
    exclusive=True,
    source="k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, DRAPlugin.PrepareResourceClaims",
    features=("cdi", "identity"),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    given=("local", "one-class"),
    needs=(Capability.DRIVER_SOCKET, Capability.RUN_ON_NODE),
    covers=("W11", "G14"),
    mutants=("cdi-content-of-each-claim",),
    counts=(1,),
)
def test_a_cdi_id_has_no_content_of_one_claim(scenario, driver, node, kubelets):
    wanted = driver.identity(max(driver.devices_on(node)))
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    first = scenario.pod("first").should_run()
    before = kubelets.cdi_definitions(first)
    first.delete().should_be_gone()

    scenario.apply("basic/chosen-device.yaml", name="second", wanted=wanted)
    after = kubelets.cdi_definitions(scenario.pod("second").should_run())

    assert {each for each in before.keys() & after.keys() if before[each] != after[each]} == NONE
    assert before
    assert after


@requirement(
    "CDI-010",
    "A container must see the variables, mounts and device nodes that the CDI devices of its own claim define, "
    "also if an earlier claim had the same device.",
    level=MUST,
    tier=E2E,
    exclusive=True,
    source="k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, DRAPlugin.PrepareResourceClaims: false cache hits",
    features=("cdi", "identity"),
    gates=("KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet"),
    given=("local", "one-class"),
    needs=(Capability.DRIVER_SOCKET, Capability.RUN_ON_NODE),
    mutants=("cdi-file-is-completed-late",),
    counts=(1,),
)
def test_a_container_sees_the_cdi_content_of_its_own_claim(scenario, driver, node, kubelets):
    wanted = driver.identity(max(driver.devices_on(node)))
    scenario.apply("basic/chosen-device.yaml", name="first", wanted=wanted)
    scenario.pod("first").should_run().delete().should_be_gone()

    scenario.apply("basic/chosen-device.yaml", name="second", wanted=wanted)
    second = scenario.pod("second").should_run().should_stay_running()

    assert second.container("workload").environment >= kubelets.cdi_edits(second)
