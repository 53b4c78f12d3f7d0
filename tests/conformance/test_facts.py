"""Facts: what is found in a cluster with a driver, and what a cluster that is not there yet will have."""

from __future__ import annotations

from typing import Any

from testbed.conformance.facts import expected, gather
from testbed.providers.base import Capability
from tests.fakes import cluster


def test_what_is_there_is_counted() -> None:
    made = cluster.make()
    kube: Any = made.kube
    found = gather(kube, made.driver_file, [Capability.MAKE_OBJECTS])
    assert (found.kubernetes, found.nodes, found.devices) == ("v1.37.0", 2, 8)
    assert found.capabilities == {"make-objects"}
    assert found.features == made.driver_file.features


def test_a_testbed_that_is_to_be_made_can_do_everything() -> None:
    found = expected("1.36", 2, frozenset({"device-status"}))
    assert found.capabilities == {each.value for each in Capability}
    assert found.features == {"device-status"}
    assert found.devices == 0
