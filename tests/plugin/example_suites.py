"""Suites as text, for tests of the plugin: one test that passes, and one that fails if a container sees no device."""

from __future__ import annotations

GOOD = """
@required(1)
def test_good(scenario):
    scenario.apply("claims/two-cats.yaml")
    scenario.pod("pod-with-cats").should_run()
"""
BAD = """
@required(2)
def test_bad(scenario):
    scenario.apply("claims/two-cats.yaml")
    first, second = scenario.pod("pod-with-cats").should_run().containers("container0", "container1")
    assert second.seen_devices == second.devices
"""
