"""Pods that come and go on a node while its driver, container runtime and kubelet are killed. Each running pod has to see its devices."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.vocabulary.cluster.nodes import Node
from testbed.vocabulary.driver.daemon import Daemon
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.pods.probe_results import named_devices
from testbed.vocabulary.scenario import Scenario
from testbed.waiting import pause

LEAST_PODS = "DRA_TESTBED_CHURN_PODS"
_SECONDS = 120.0
_AT_ONCE = 4  # pods of a round; those of the previous round may be ending meanwhile
_STEP, _STEPS = 0.2, 12  # after so many seconds, from round to round, a component is killed


@dataclass(frozen=True)
class Churned:
    """The number of pods that ran, and a description of each that ran without its devices."""

    pods: int
    without_devices: tuple[str, ...]


@dataclass(frozen=True)
class Churn:
    """The churn of pods on one node. `note` gets a sentence for the report."""

    scenario: Scenario
    driver: Driver
    daemon: Daemon
    node: Node
    note: Callable[[str], None]

    def run(self, manifest: str) -> Churned:
        """Create pods of a manifest and kill components, for two minutes and for at least as many pods as the environment says."""
        least, began, found = _least_pods(), time.monotonic(), Churned(0, ())
        kills = (self.daemon.kill_on, Node.restart_runtime, Node.restart_kubelet)
        at_once = self._pods_at_once()
        for number in itertools.count():
            if time.monotonic() - began >= _SECONDS and found.pods >= least:
                break
            pods = self._create(manifest, number, at_once)
            pause(_STEP * (number // len(kills) % _STEPS))
            kills[number % len(kills)](self.node)
            wrong = tuple(filter(None, map(_describe_if_wrong, pods.should_recover())))
            found = Churned(found.pods + len(pods), (*found.without_devices, *wrong))
            pods.delete()
        self.note(
            f"{found.pods} pods ran, {number} components were killed, {len(found.without_devices)} pods lacked devices"
        )
        return found

    def _pods_at_once(self) -> int:
        """Return how many pods fit on half of the node's devices, so that those of the previous round may still be ending."""
        shape, devices = self.scenario.world.driver_file.devices.claim, self.driver.devices_on(self.node)
        fitting = 1 if shape.counts == "all" or shape.with_ else len(devices) // (2 * shape.count)
        return max(1, min(_AT_ONCE, fitting))

    def _create(self, manifest: str, number: int, count: int) -> Pods:
        names = [f"round-{number}-{index}" for index in range(count)]
        for name in names:
            self.scenario.apply(manifest, name=name, node=self.node)
        return self.scenario.pods(*names)


def _describe_if_wrong(pod: Pod) -> str:
    """Describe a running pod that does not see the devices of its claims; '' for one that does."""
    seen, allocated = frozenset(pod.seen_devices), frozenset(pod.devices)
    return "" if seen == allocated else f"{pod.name} sees {named_devices(seen)}, not {named_devices(allocated)}"


def _least_pods() -> int:
    text = os.environ.get(LEAST_PODS) or "0"
    if not text.isdecimal():
        raise UsageError(f"{LEAST_PODS} is {text!r}, but must be a number of pods")
    return int(text)
