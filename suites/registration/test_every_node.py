"""Registration of the driver with the kubelet of each node."""

from testbed.conformance import E2E, MUST, requirement


@requirement(
    "REG-001",
    "The driver must register with the kubelet of every node where it is expected, so that pods there run and see their devices.",
    level=MUST,
    tier=E2E,
    source="KEP-4381, section Communication between kubelet and kubelet plugin",
    given=("local",),
    covers=("P1",),
    mutants=(
        "forget-registration-socket",
        "no-env",
        "register-on-odd-nodes",
        "taints-nodes-on-which-it-fails",
        "env-of-another-device",
    ),
)
def test_a_pod_with_a_claim_starts_on_every_node(scenario, nodes):
    scenario.apply("basic/one-pod-per-node.yaml")
    pods = scenario.daemonset("one-per-node").pods_on(nodes)

    pods.should_run()

    assert pods.seen_devices == pods.devices
