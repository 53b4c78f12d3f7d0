"""Failures between prepare and the start of a container, and restarts of the container runtime: no pod runs without its devices."""

from testbed.conformance import DISRUPTIVE, MUST, Capability, messages, requirement

PREPARED = "KEP-4381, section NodePrepareResource: the devices are prepared before the containers of the pod start"
DRIVER = (Capability.CHANGE_DRIVER,)
RUNTIME = (Capability.RESTART_RUNTIME,)
MISSING = "no-such-handler"


@requirement(
    "LIFE-051",
    "A pod whose claim is prepared must not run without its device when its sandbox is created while the driver is stopped. "
    "When the driver is back, the pod must run and see its device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=DRIVER,
    source=PREPARED,
    mutants=("cdi-files-end-with-the-driver",),
)
def test_a_sandbox_is_created_while_the_driver_is_away(scenario, daemon, node):
    scenario.apply("lifecycle/runtime-class.yaml", handler=MISSING)
    scenario.apply("lifecycle/pod-of-a-runtime-class.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(messages.FAILED_SANDBOX, MISSING)

    daemon.stop_on(node)
    scenario.delete("runtimeclass", scenario.namespace)
    scenario.apply("lifecycle/runtime-class.yaml", handler=node.runtime_handler)
    pod.should_not_run_without_devices()
    daemon.start_again()
    pod.should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-052",
    "When the driver restarts between prepare and the creation of the pod's sandbox, the pod must run and see its device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=DRIVER,
    source=PREPARED,
    mutants=("starts-clean", "cdi-files-end-with-the-driver"),
)
def test_the_driver_restarts_before_the_sandbox_is_created(scenario, daemon, node):
    scenario.apply("lifecycle/runtime-class.yaml", handler=MISSING)
    scenario.apply("lifecycle/pod-of-a-runtime-class.yaml", node=node)
    pod = scenario.pod("pod").should_have_event(messages.FAILED_SANDBOX, MISSING)

    daemon.restart(node)
    scenario.delete("runtimeclass", scenario.namespace)
    scenario.apply("lifecycle/runtime-class.yaml", handler=node.runtime_handler)
    pod.should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-053",
    "A pod must keep its device while the container runtime restarts, and a container restarted afterwards must see the device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RUNTIME,
    source="Kubernetes documentation: Pod Lifecycle, section Container restart policy",
    mutants=("cdi-file-is-lost",),
)
def test_a_pod_keeps_its_device_while_the_runtime_is_restarted(scenario, node):
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_run()

    node.restart_runtime()
    container = pod.should_recover().container("workload")

    assert container.seen_devices == pod.devices
    assert container.restart().seen_devices == pod.devices


@requirement(
    "LIFE-054",
    "A pod that is created after a restart of the container runtime must run and see its device.",
    level=MUST,
    tier=DISRUPTIVE,
    needs=RUNTIME,
    source=PREPARED,
    mutants=("no-env",),
)
def test_a_new_pod_runs_after_the_runtime_was_restarted(scenario, node):
    node.restart_runtime()
    scenario.apply("basic/claim-on-a-node.yaml", node=node)
    pod = scenario.pod("pod").should_recover()

    assert pod.seen_devices == pod.devices


@requirement(
    "LIFE-060",
    "While pods come and go, and the driver, the container runtime and the kubelet of their node are killed again and again, "
    "no pod must run without its devices.",
    level=MUST,
    tier=DISRUPTIVE,
    exclusive=True,
    needs=(Capability.CHANGE_DRIVER, Capability.RESTART_RUNTIME, Capability.RESTART_KUBELET),
    given=("local",),
    source=PREPARED,
    mutants=("answers-nothing-while-it-starts",),
)
def test_no_pod_runs_without_its_devices(churn):
    seen = churn.run("lifecycle/churning-pod.yaml")

    assert seen.pods
    assert seen.without_devices == ()
