from testbed.onboarding.discovery.inference.pods import candidates, describe, is_clear
from tests.onboarding.discovery.shapes import daemonset


def test_the_driver_is_the_daemonset_that_can_publish_and_register() -> None:
    log = daemonset("log", folder="/var/log")
    monitor = daemonset("monitor", folder="/var/lib/kubelet", writes_slices=False)
    plugin = daemonset("acme")
    found = candidates([log, monitor, plugin], "gpu.example.com", ["node-1"])
    assert [each.name for each in found] == ["acme", "monitor"]
    assert is_clear(found, "gpu.example.com")


def test_of_two_possible_daemonsets_the_one_that_names_the_driver_comes_first() -> None:
    named = daemonset("zeta", priorityClassName="gpu.example.com")
    found = candidates([daemonset("acme"), named], "gpu.example.com", ["node-1"])
    assert found[0] is named
    assert is_clear(found, "gpu.example.com")
    assert not is_clear(found, "other.example.com")


def test_the_container_is_the_one_that_mounts_the_plugins() -> None:
    found = describe(daemonset("acme"))
    assert (found.namespace, found.selector, found.container) == ("acme-system", "app=acme", "plugin")
    assert (found.version, found.labels, found.needs) == ("1.4.2", {}, ())


def test_nodes_need_the_labels_of_selector_and_affinity() -> None:
    terms = [{"matchExpressions": [{"key": "acme.example/gpu", "operator": "In", "values": ["true", "yes"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    selector = {"kubernetes.io/os": "linux", "pool": "gpus"}
    found = describe(daemonset("acme", nodeSelector=selector, affinity=affinity))
    assert found.labels == {"pool": "gpus", "acme.example/gpu": "true"}


def test_a_driver_that_mounts_the_socket_of_nri_needs_it() -> None:
    volumes = [{"name": "nri", "hostPath": {"path": "/var/run/nri/"}}]
    assert describe(daemonset("acme", volumes=volumes)).needs == ("nri",)
