"""Allocate and prepare one device on each node, and run the probe in a pod with and in one without the claim.

Used by `driver check`, `driver init` and at the start of a run. It judges nothing: `trial_findings` does.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.errors import DriverFailed, TestbedError, WaitTimeout
from testbed.kube.client import Object
from testbed.models.driver.probe import Observation
from testbed.onboarding.checks import contents
from testbed.onboarding.checks.contents import Contents
from testbed.vocabulary import budgets
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.diagnosis import describe_pod, lacks_devices, occurrences
from testbed.vocabulary.observing.observation import StateUnreachable
from testbed.vocabulary.observing.prepare_errors import is_unknown_to_authorizer, read_prepare_error
from testbed.vocabulary.pods import pod_states
from testbed.vocabulary.pods.device_metadata import devices_in
from testbed.vocabulary.pods.identified_devices import by_identity
from testbed.vocabulary.pods.probe_command import in_container
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World
from testbed.waiting import Budget, NotYet, eventually

NAME = "check"  # of the namespace, in the place of a requirement
CONTAINER = "workload"
QUICK = Budget("first pods run", 20, "on a local testbed two seconds; the kubelet repeats a failed prepare after 10 s")
_FREED = Budget("devices are free", 5, "the scheduler tries again as soon as a claim is deallocated")
_REPEATED = 2  # refusals after which a driver is believed: the kubelet has tried again


class Cause(enum.StrEnum):
    """What kept a pod of a trial from running."""

    DRIVER = "driver"
    ENVIRONMENT = "environment"
    NO_DEVICE = "no-device"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Seen:
    """What the probe printed in a container, what it shows of devices, and what else the container has."""

    pod: str
    ids: frozenset[str]
    printed: str
    code: int
    errors: str
    contents: Contents


@dataclass(frozen=True)
class Trial:
    """What a probe shows in containers with and without a device of a class on a node.

    `published` are the identities, or the names if the probe shows names, of the devices that a container on this node may see.
    """

    device_class: str
    node: str
    probe: Observation
    with_claim: Seen
    without: Seen
    published: frozenset[str] = frozenset()

    @property
    def shows_nothing_new(self) -> bool:
        """Return True if the probe shows the same devices in both containers."""
        return self.with_claim.ids == self.without.ids

    @property
    def additions(self) -> tuple[str, ...]:
        """Return what the claim added to its container, in words."""
        return self.with_claim.contents.additions_to(self.without.contents)


@dataclass(frozen=True)
class FailedTrial:
    """A trial without containers to compare, and why. `ran` is True if its pods ran, so the claim was prepared."""

    device_class: str
    node: str
    cause: Cause
    why: str
    ran: bool = False


def try_devices(world: World, nodes: Sequence[str] = (), budget: Budget = budgets.RUN) -> list[Trial | FailedTrial]:
    """Try one device of each ordinary class on each of the nodes (default: all expected ones), and remove everything again."""
    tried_on = sorted(nodes or world.nodes)
    world.slices()  # recorded: a driver may remove devices that a claim uses
    own = replace(world, manifests=Path(__file__).parent)
    return [trial for each in world.driver_file.devices.classes for trial in _try_class(own, each, tried_on, budget)]


def _try_class(world: World, device_class: str, nodes: Sequence[str], budget: Budget) -> list[Trial | FailedTrial]:
    with new_scenario(world, NAME) as scenario:
        scenario.apply("trial.yaml", device_class=device_class, nodes=list(nodes))
        wait_for_pods(scenario, budget)
        with ThreadPoolExecutor(max_workers=min(16, len(nodes))) as pool:
            found = pool.map(lambda node: _trials(scenario, device_class, nodes.index(node), node), nodes)
            return [trial for trials in found for trial in trials]


def wait_for_pods(scenario: Scenario, budget: Budget = QUICK) -> None:
    """Wait until each pod runs, or shows why it does not."""
    synced: set[str] = set()
    with contextlib.suppress(WaitTimeout):
        eventually(lambda: _check(scenario, synced, patient=False), "the first pods", budget, longest_pause=0.2)
        eventually(lambda: _check(scenario, synced, patient=True), "free devices", _FREED, longest_pause=0.5)


def _check(scenario: Scenario, synced: set[str], *, patient: bool) -> None:
    """Raise NotYet while a pod may still run. A pod without a device is waited for only if `patient`."""
    kube = scenario.world.kube
    waiting = {
        str(each["metadata"]["name"]): each
        for each in kube.list("v1", "Pod", scenario.namespace)
        if not is_running(each)
    }
    events = kube.list("v1", "Event", scenario.namespace) if waiting else []
    _sync(scenario, events, waiting.keys() - synced, synced)
    refused = _refused(events)
    undecided = [pod for name, pod in waiting.items() if name not in refused and (patient or not lacks_devices(pod))]
    if undecided:
        raise NotYet("; ".join(map(describe_pod, undecided)))


def _sync(scenario: Scenario, events: Sequence[Object], pods: Collection[str], synced: set[str]) -> None:
    """Let kubelets look again at once that read a claim before the API server knew the pod. By themselves they wait for ten seconds."""
    for name in {_about(each) for each in events if is_unknown_to_authorizer(each)}.intersection(pods):
        scenario.pod(name).trigger_sync()
        synced.add(name)


def _refused(events: Sequence[Object]) -> set[str]:
    """Return the pods whose claims the driver refused, also at the second attempt."""
    return {
        _about(each)
        for each in events
        if (error := read_prepare_error(each)) and error.is_refusal and occurrences(each) >= _REPEATED
    }


def _about(event: Object) -> str:
    return str(event["involvedObject"]["name"])


def is_running(pod: Object) -> bool:
    """Return True if all containers of a pod run."""
    try:
        pod_states.running(pod)
    except (NotYet, StateUnreachable):
        return False
    return True


def _trials(scenario: Scenario, device_class: str, number: int, node: str) -> list[Trial | FailedTrial]:
    names = {kind: f"{kind}-{number}" for kind in ("without", "with")}
    for name in names.values():
        pod = scenario.pod(name).object
        if not is_running(pod):
            failed = FailedTrial(device_class, node, *_why(scenario.world, pod))
            scenario.pod(name).delete(by_force=True)  # a driver that hangs would keep it for a minute
            return [failed]
    try:
        containers = {kind: _contents(scenario, name) for kind, name in names.items()}
        return [_compare(scenario, device_class, node, probe, names, containers) for probe in _probes(scenario.world)]
    except TestbedError as lost:
        cause = Cause.DRIVER if isinstance(lost, DriverFailed) else Cause.ENVIRONMENT
        return [FailedTrial(device_class, node, cause, str(lost), ran=True)]


def _probes(world: World) -> list[Observation]:
    probe = world.driver_file.probe
    return [probe, *filter(None, [probe.without])]


def _compare(
    scenario: Scenario,
    device_class: str,
    node: str,
    probe: Observation,
    names: Mapping[str, str],
    containers: Mapping[str, Contents],
) -> Trial:
    """Return what the same probe shows in both containers."""
    with_claim, without = (_seen(scenario, names[kind], probe, containers[kind]) for kind in ("with", "without"))
    return Trial(device_class, node, probe, with_claim, without, _published(scenario.world, node, probe))


def _why(world: World, pod: Object) -> tuple[Cause, str]:
    """Return why a pod does not run. One without a claim needs nothing of the driver, unless that acts on sandboxes."""
    found = queries.diagnose_pod(world, pod["metadata"]["namespace"], pod["metadata"]["name"], pod)
    seen = "; ".join(filter(None, [found.cause, *found.warnings[-1:], describe_pod(pod)]))
    if lacks_devices(pod):
        return Cause.NO_DEVICE, seen
    if found.by_environment:
        return Cause.ENVIRONMENT, seen
    return (Cause.DRIVER if found.by_driver else Cause.UNKNOWN), seen


def _contents(scenario: Scenario, pod: str) -> Contents:
    answer = scenario.world.kube.exec_unchecked(scenario.namespace, pod, contents.COMMAND, container=CONTAINER)
    return contents.read(answer.stdout)


def _seen(scenario: Scenario, pod: str, probe: Observation, found: Contents) -> Seen:
    kube = scenario.world.kube
    answer = kube.exec_unchecked(scenario.namespace, pod, in_container(probe.argv), container=CONTAINER)
    ids = map(str, devices_in(answer.stdout)) if probe.shows == "device" else probe.ids(answer.stdout)
    return Seen(pod, frozenset(ids), answer.stdout, answer.code, answer.stderr, found)


def _published(world: World, node: str, probe: Observation) -> frozenset[str]:
    """Return what the probe can show of the devices that slices have for this node, or had before a claim used them."""
    world.slices()
    usable = (each for each in world.record.newest.values() if each.is_usable_on(node))
    return frozenset(by_identity(usable, world.driver_file, by_name=probe.shows_names))
