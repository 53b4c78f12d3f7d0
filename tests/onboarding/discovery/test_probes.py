from typing import Any

import pytest

from testbed.onboarding.discovery.facts import Sample
from testbed.onboarding.discovery.inference.identities import identity_candidates
from testbed.onboarding.discovery.inference.probes import find_probe
from testbed.onboarding.discovery.inference.shown import ProbeFinding
from tests.onboarding.discovery.shapes import CPUS, GPUS, NICS, PLAIN, UID, changed, sample


def found(*samples: Sample) -> ProbeFinding | None:
    devices = {"gpu": GPUS, "cpu": CPUS, "nic": NICS}[samples[0].devices[0].name[:3]]
    return find_probe([PLAIN, *samples], identity_candidates(devices), devices)


def gpus(count: int) -> Sample:
    """Return a container with a variable for each GPU, which is named after the device."""
    mine = GPUS[:count]
    variables = {f"GPU_DEVICE_{each.name.replace('-', '_')}_UUID": each.attributes["uuid"] for each in mine}
    return sample(*mine, variables={**variables, "GPU_COUNT": str(count)})


def test_an_identity_in_a_variable() -> None:
    probe = found(gpus(1), gpus(2))
    assert probe
    assert (probe.kind, probe.pattern) == ("env", r"^GPU_DEVICE_\w+_UUID=(?P<id>[\w-]+)$")
    assert probe.identity
    assert probe.identity.attribute == "uuid"


def test_the_name_of_a_device_if_no_identity_is_seen() -> None:
    probe = found(sample(GPUS[1], variables={"GPU_DEVICE_1": "gpu-1"}))
    assert probe
    assert (probe.pattern, probe.identity) == (r"^GPU_DEVICE_\d+=(?P<name>[\w-]+)$", None)


@pytest.mark.parametrize(
    ("kind", "contents", "pattern"),
    [
        ("deviceNode", {"device_nodes": ["/dev/acme/gpu-node-1-0"]}, r"^/dev/acme/(?P<id>[\w-]+)$"),
        ("mount", {"mounts": ["/opt/acme/gpu-0/lib"]}, r"^/opt/acme/(?P<name>[\w-]+)/lib$"),
    ],
)
def test_device_nodes_and_mounts(kind: str, contents: dict[str, Any], pattern: str) -> None:
    probe = found(sample(GPUS[0], **contents))
    assert probe
    assert (probe.kind, probe.pattern) == (kind, pattern)


def test_a_network_interface_that_came_with_the_claim() -> None:
    probe = found(sample(NICS[2], interfaces=["nic2"]), sample(*NICS[:2], interfaces=["nic0", "nic1"]))
    assert probe
    assert (probe.kind, probe.pattern) == ("networkInterface", r"^(?P<id>nic\d+)$")


def test_the_cpus_of_a_container_come_before_a_variable_that_lists_them() -> None:
    probe = found(
        sample(CPUS[3], variables={f"DRA_CPUSET_{UID}": "3"}, cpus="3"),
        sample(*CPUS[:2], variables={f"DRA_CPUSET_{UID}": "0-1"}, cpus="0-1"),
    )
    assert probe
    assert (probe.kind, probe.pattern) == ("cpuset", "")
    assert probe.identity
    assert probe.identity.attribute == "cpuID"


def test_a_variable_that_lists_devices_does_not_show_each_of_them() -> None:
    one = sample(GPUS[0], variables={"VISIBLE": "gpu-0"})
    two = sample(*GPUS[1:], variables={"VISIBLE": "gpu-1,gpu-2"})
    assert found(one)
    both = found(one, two)
    assert both
    assert both.pattern == r"^VISIBLE=(?P<set>.+)$"


def test_what_every_container_shows_is_no_probe() -> None:
    """A node that lets every pod see its devices."""
    everywhere: dict[str, Any] = {"variables": {"GPU": "gpu-0"}}
    assert find_probe([sample(without=True, **everywhere), sample(GPUS[0], **everywhere)], [], []) is None


def test_nothing_is_found_without_containers_to_compare() -> None:
    assert find_probe([PLAIN], [], []) is None
    assert find_probe([gpus(1)], [], []) is None
    assert find_probe([PLAIN, Sample("node-1", 1, refusal="prepare failed")], [], []) is None


GROUPS = {"ACME": "1", f"CPUSET_{UID}": "0-1"}


def test_something_else_that_differs_for_each_device_is_compared_as_a_set() -> None:
    """CPUs of a device that is a group of CPUs."""
    probe = found(sample(GPUS[0], variables=GROUPS), sample(GPUS[1], variables={**GROUPS, f"CPUSET_{UID}": "2-3"}))
    assert probe
    assert (probe.kind, probe.pattern, probe.identity) == ("env", r"^CPUSET_[\w-]+=(?P<set>.+)$", None)


def test_what_is_the_same_for_all_devices_only_shows_that_there_is_one() -> None:
    overlapping = found(
        sample(GPUS[0], variables=GROUPS), sample(GPUS[1], variables={**GROUPS, f"CPUSET_{UID}": "1-2"})
    )
    assert overlapping
    assert overlapping.command == ("sh", "-c", "env | grep -qE '^ACME='")
    tool = found(sample(GPUS[0], mounts=["/opt/tool"]))
    assert tool
    assert tool.command == ("test", "-e", "/opt/tool")


def test_claims_that_share_a_device_are_not_compared() -> None:
    shared = [changed(each, allowMultipleAllocations=True) for each in GPUS]
    probe = found(
        sample(shared[0], variables={f"CPUSET_{UID}": "0-1"}), sample(shared[1], variables={f"CPUSET_{UID}": "2-3"})
    )
    assert probe
    assert probe.command == ("sh", "-c", "env | grep -qE '^CPUSET_[[:alnum:]_-]+='")
