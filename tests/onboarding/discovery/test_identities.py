from testbed.onboarding.discovery.inference.identities import Examples, IdentityCandidate, examples, identity_candidates
from tests.onboarding.discovery.shapes import CPUS, GPU, GPUS, NICS, device


def test_an_identity_is_unique_in_the_cluster_or_on_each_node() -> None:
    assert identity_candidates(GPUS)[0] == IdentityCandidate("uuid", "cluster")
    assert identity_candidates(CPUS) == [IdentityCandidate("coreID", "node"), IdentityCandidate("cpuID", "node")]


def test_texts_come_before_numbers_and_well_known_names_before_others() -> None:
    assert [each.attribute for each in identity_candidates(GPUS)] == ["uuid", "index"]
    assert [each.attribute for each in identity_candidates(NICS)] == ["mac", "ifName"]


def test_an_attribute_that_some_device_lacks_or_that_repeats_is_no_identity() -> None:
    devices = [device(GPU, "node-1", "gpu-0", uuid="a", serial="1"), device(GPU, "node-1", "gpu-1", uuid="a")]
    assert identity_candidates(devices) == []


def test_a_single_device_tells_nothing_about_identities() -> None:
    assert identity_candidates(GPUS[:1]) == []


def test_examples_are_names_that_all_devices_have() -> None:
    assert examples(GPUS) == Examples("model", "memory", "model")
    assert examples(CPUS) == Examples("coreType", "", "numaNodeID")
    assert examples([*GPUS, device(GPU, "node-2", "odd")]) == Examples()


def test_a_match_attribute_is_shared_by_devices_of_each_node() -> None:
    roots = [device(GPU, "node-1", f"gpu-{number}", pcieRoot=f"pci{number // 2}") for number in range(4)]
    assert examples(roots).match == "pcieRoot"
    assert examples(roots[:3:2]).match == ""
