"""What the controller decides once before anything is collected: the testbed, the driver file, the facts. Called by `startup`."""

from __future__ import annotations

import os
import secrets

import pytest

from testbed import bringup
from testbed.bringup.resolved_config import check_needs
from testbed.conformance import facts, leases
from testbed.conformance.context import RunContext
from testbed.drivers import refuse_wrong_names
from testbed.drivers.versions import images_of
from testbed.errors import TestbedError
from testbed.models.driver_file import load_companions, load_driver_file
from testbed.models.report import Environment
from testbed.models.run_request import RunRequest
from testbed.plugin.request import check_earlier_report, request_of
from testbed.providers.base import Capability

_OUTCOME = pytest.StashKey[RunContext | TestbedError]()


def context_of(config: pytest.Config) -> RunContext:
    """Return the context of this run. The first call decides, also about the error that each call raises."""
    if _OUTCOME not in config.stash:
        try:
            decided = decide(request_of(config))
            check_earlier_report(config, decided.driver_file)
            config.stash[_OUTCOME] = decided
        except TestbedError as refused:
            config.stash[_OUTCOME] = refused
    outcome = config.stash[_OUTCOME]
    if isinstance(outcome, TestbedError):
        raise outcome
    return outcome


def decide(request: RunRequest) -> RunContext:
    """Look at the testbed and the driver file. UsageError if they do not fit each other."""
    testbed = bringup.attach(request.testbed)
    path = request.driver_file(testbed.config)
    driver_file = load_driver_file(path)
    check_needs(testbed.config.provider, [driver_file])
    refuse_wrong_names(testbed.kube, driver_file)
    found = facts.gather(testbed.kube, driver_file, testbed.cluster.capabilities, testbed.owner, testbed.kept_nodes)
    environment = Environment(
        testbed=testbed.name,
        provider=testbed.config.provider,
        kubernetes=found.kubernetes,
        nodes=found.nodes,
        runtime=_runtimes(testbed),
        feature_gates=dict(testbed.config.feature_gates),
        gates_assumed=tuple(sorted(found.gates_assumed)),
        read_only=Capability.MAKE_OBJECTS not in testbed.cluster.capabilities,
    )
    images = images_of(testbed.kube, [driver_file, *load_companions(driver_file)])
    return RunContext(request, path, environment, found, session=secrets.token_hex(4), images=images)


def workers(config: pytest.Config) -> int:
    """Return how many workers `-n auto` starts. 0 if the request is refused: `context_of` says why when the session starts."""
    try:
        min_node_devices = context_of(config).facts.min_node_devices
    except TestbedError:
        return 0
    return leases.workers(len(os.sched_getaffinity(0)), min_node_devices)


def _runtimes(testbed: bringup.Testbed) -> str:
    """Return the container runtimes of the nodes, with their versions."""
    nodes = testbed.kube.list("v1", "Node")
    infos = [node.get("status", {}).get("nodeInfo", {}) for node in nodes]
    return ", ".join(sorted({info["containerRuntimeVersion"] for info in infos if info}))
