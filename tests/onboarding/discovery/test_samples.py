"""Pods with and without claims run on one node, and their containers are compared; everything is removed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.onboarding.checks.all_checks import world_on
from testbed.onboarding.discovery.gathering import gather
from testbed.onboarding.discovery.inference.identities import identity_candidates
from testbed.onboarding.discovery.inference.probes import find_probe
from testbed.onboarding.discovery.limits import observe_limits
from testbed.onboarding.discovery.samples import take_samples
from testbed.waiting import set_patience
from tests.fakes import cluster


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.01)
    yield
    set_patience(1.0)


def test_a_probe_is_found_in_containers_with_devices() -> None:
    made: Any = cluster.make()
    devices = gather(made.kube).devices
    found = take_samples(world_on(made, made.driver_file), "node-1", (0, 1), devices)
    assert [len(each.devices) for each in found] == [0, 1]
    assert found[1].claim_uid
    probe = find_probe(found, identity_candidates(devices), devices)
    assert probe
    assert probe.pattern == "^GPU_DEVICE_GPU_UUID=(?P<id>[\\w-]+)$"
    assert not [key for key in made.kube.objects if key[0] in ("Pod", "ResourceClaim")]


def test_a_pod_that_does_not_run_has_a_refusal() -> None:
    made: Any = cluster.make("no-pods-start")
    _, refused = take_samples(world_on(made, made.driver_file), "node-1", (0, 1), ())
    assert "not registered" in refused.refusal


def test_each_use_of_claims_is_tried() -> None:
    made: Any = cluster.make()
    found = observe_limits(world_on(made, made.driver_file), "node-1")
    assert found.refusals == {}
    assert set(found.containers) == {
        "shared-claims",
        "admin-access",
        "shared-by-containers",
        "one-request",
        "several-claims",
    }
    assert "GPU_DEVICE_GPU_UUID" not in found.beside.variables
