"""Repair nodes and driver after a disruptive test that did not restore them, so that the next one can run. The plugin calls it.

It does what the cluster's capabilities permit: `--allow` limits them on a cluster of others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import cast

from testbed.drivers import live_control
from testbed.drivers.ready import driver_pods, wait_ready
from testbed.errors import TestbedError
from testbed.providers.base import Capability, RebootsNodes, ResetsNodes, RestartsNodeComponents
from testbed.vocabulary.cluster.cluster_condition import (
    ClusterCondition,
    current_condition,
    differences,
    lacks_driver,
    wait_until_restored,
)
from testbed.vocabulary.ledger import Ledger
from testbed.vocabulary.world import World


def restore(world: World, before: ClusterCondition) -> None:
    """Bring the cluster back into its earlier condition. Raise TestbedError if that does not succeed.

    First nodes are repaired, then the driver is restarted, because pods can end only with both. A driver that does not recover may fail
    on what it or the kubelet stored, so its nodes are reset in the end. Nothing is waited for if nothing may be changed.
    """
    able = _capabilities(world)
    if not differences(before, current_condition(world)):
        return
    _repair_nodes(world, before.ready_nodes - current_condition(world).ready_nodes, able)
    if Capability.CHANGE_DRIVER in able:
        _restart_driver(world, before)
    for namespace in current_condition(world).namespaces - before.namespaces:
        _end_pods(world, namespace)
    if Capability.RESET_NODE in able:
        _reset_nodes(world, before)
    if able & {Capability.CHANGE_DRIVER, Capability.REBOOT_NODE, Capability.RESTART_KUBELET}:
        wait_until_restored(world, before)
    check_restored(world, before)


def check_restored(world: World, before: ClusterCondition) -> None:
    """Raise TestbedError if the cluster is not in its earlier condition now."""
    found = differences(before, current_condition(world))
    if found:
        raise TestbedError("; ".join(found))


def _capabilities(world: World) -> frozenset[Capability]:
    return world.cluster.capabilities if world.cluster else frozenset()


def _repair_nodes(world: World, unready: Collection[str], able: Collection[Capability]) -> None:
    for node in sorted(unready):
        if Capability.REBOOT_NODE in able:
            cast("RebootsNodes", world.cluster).reboot(node)
        elif Capability.RESTART_KUBELET in able:
            cast("RestartsNodeComponents", world.cluster).stop_kubelet(node)
            cast("RestartsNodeComponents", world.cluster).start_kubelet(node)


def _restart_driver(world: World, before: ClusterCondition) -> None:
    """Replace the driver's pods, and restore its hardware where tests can change it. What is still missing then, the caller reports."""
    now = current_condition(world)
    if not lacks_driver(before, now):
        return
    for pod in driver_pods(world.kube, world.driver_file):
        world.kube.delete(pod, grace=0)
    with contextlib.suppress(TestbedError):
        wait_ready(world.kube, world.driver_file, before.ready_drivers or None)
    if world.driver_file.control:
        for node in sorted(before.ready_drivers):
            with contextlib.suppress(TestbedError):
                live_control.run_control(world.kube, world.driver_file, node, ["restore"])


def _reset_nodes(world: World, before: ClusterCondition) -> None:
    now = current_condition(world)
    if not lacks_driver(before, now):
        return
    for node in sorted((before.ready_drivers - now.ready_drivers) or before.ready_drivers):
        cast("ResetsNodes", world.cluster).reset_node(node)


def _end_pods(world: World, namespace: str) -> None:
    """Remove the pods of a test by force, and then everything else in its namespace."""
    for pod in world.kube.list("v1", "Pod", namespace):
        world.kube.delete(pod, grace=0)
    home = world.kube.find("v1", "Namespace", namespace)
    with contextlib.suppress(TestbedError):
        Ledger(world.kube, namespace, lambda each: each, [home] if home else []).clean_up()
