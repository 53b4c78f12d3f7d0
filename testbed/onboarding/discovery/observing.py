"""Uses devices of a driver on one node, to see what containers get and which uses are refused. `initialize` calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from testbed.bringup import Testbed
from testbed.kube.nodes import lasting_taints
from testbed.onboarding.checks.all_checks import world_on
from testbed.onboarding.discovery.draft import Observed
from testbed.onboarding.discovery.facts import Sample, by_node
from testbed.onboarding.discovery.limits import observe_limits
from testbed.onboarding.discovery.samples import take_samples
from testbed.onboarding.discovery.sources import Source, provisional
from testbed.progress import Progress
from testbed.vocabulary.world import World


def observe(testbed: Testbed, source: Source, found: Observed, progress: Progress) -> Observed:
    """Return what was found with what containers on one node have, and which uses of claims are refused."""
    of, namespace = found.classes, found.pods.namespace
    driver_file = provisional(source, driver=found.driver, namespace=namespace, device_class=of.ordinary[0])
    world = world_on(testbed, driver_file)
    counts = {node: len(devices) for node, devices in by_node(of.selected).items() if node}
    node = _node(found, counts)
    with progress.step(f"pods with and without devices of class {of.ordinary[0]} on {node}"):
        samples = _samples(world, found, node, counts.get(node, len(of.selected)))
    with progress.step("pods that share devices"):
        limits = observe_limits(world, node)
    return replace(found, samples=tuple(samples), limits=limits)


def _samples(world: World, found: Observed, node: str, free: int) -> list[Sample]:
    """Return containers with no, one and two devices; if one device is refused, also one with all devices of the node."""
    selected = found.classes.selected
    samples = take_samples(world, node, (0, 1, 2) if free > 2 else (0, 1), selected)
    if any(each.count == 1 and each.refusal for each in samples):
        samples += take_samples(world, node, (free,), selected)
    return samples


def _node(found: Observed, counts: Mapping[str, int]) -> str:
    """Return the node with most devices; if all devices are network-attached, the first that takes pods."""
    if counts:
        return max(sorted(counts), key=lambda node: counts[node])
    names = [str(each["metadata"]["name"]) for each in found.nodes if not lasting_taints(each)]
    return next(iter(names), str(found.nodes[0]["metadata"]["name"]))
