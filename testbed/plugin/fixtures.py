"""The fixtures of the suites. Registered only in sessions that judge a driver."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed import bringup
from testbed.bringup import Testbed
from testbed.conformance.context import RunContext
from testbed.conformance.leases import Leases
from testbed.conformance.profiles import CORE, profile
from testbed.conformance.requirement import Requirement, requirement_of
from testbed.conformance.selection import runs_alone
from testbed.drivers.published import kept_slices
from testbed.errors import UsageError
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Tier
from testbed.onboarding.checks.all_checks import world_on
from testbed.plugin import serial_tests
from testbed.plugin.markers import requirement_of_item
from testbed.vocabulary.churn import Churn
from testbed.vocabulary.cluster.accounts import Account
from testbed.vocabulary.cluster.kubelets import Kubelets
from testbed.vocabulary.cluster.nodes import Node, restored_node
from testbed.vocabulary.driver.daemon import Daemon, restored_driver
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.driver.hardware import Hardware, restored_hardware
from testbed.vocabulary.driver.installed_release import InstalledRelease, restored_release
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World

CONTEXT = pytest.StashKey[RunContext]()
NOTE = "note"  # a property of a test for the controller: a sentence for the report, also if the test passes
WAITED = "waited"  # a property of a test for the controller: the seconds that it waited for devices


@pytest.fixture(scope="session")
def testbed(pytestconfig: pytest.Config) -> Testbed:
    """Return the testbed of this run."""
    return bringup.attach(pytestconfig.stash[CONTEXT].request.testbed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of the profile core that uses devices for each class of ordinary devices."""
    requirement, classes = requirement_of(metafunc.function), _classes(metafunc.config.stash[CONTEXT].driver_file)
    uses_devices = requirement is not None and requirement.tier is not Tier.STATIC and "world" in metafunc.fixturenames
    if len(classes) > 1 and requirement and uses_devices and profile(CORE).has(requirement.id):
        metafunc.parametrize("world", classes, indirect=True)


@functools.cache
def _classes(driver_file: Path) -> tuple[str, ...]:
    return load_driver_file(driver_file).devices.classes


@pytest.fixture(scope="session")
def world_of_run(pytestconfig: pytest.Config, testbed: Testbed) -> World:
    """Return what the vocabulary needs to know about this run."""
    context = pytestconfig.stash[CONTEXT]
    process = f"{context.session}-{getattr(pytestconfig, 'workerinput', {}).get('workerid', 'main')}"
    made = world_on(testbed, load_driver_file(context.driver_file), process)
    made.record.observe(kept_slices.load(context.request.report))
    return made


@pytest.fixture
def world(request: pytest.FixtureRequest, world_of_run: World) -> World:
    """Return what the vocabulary needs to know, with the class of ordinary devices that this test requests."""
    name = getattr(request, "param", "")
    return replace(world_of_run, driver_file=world_of_run.driver_file.for_class(name)) if name else world_of_run


@pytest.fixture(autouse=True)
def _cluster_unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a disruptive test leaves the cluster as it found it."""
    if serial_tests.is_disruptive(request.node):
        yield from serial_tests.cluster_unchanged(request.config, request.getfixturevalue("world"), request.node.nodeid)
    else:
        yield


@pytest.fixture
def lease(request: pytest.FixtureRequest) -> Iterator[Requirement]:
    """Hold the devices of the test's requirement until its clean-up is complete.

    Without xdist, tests run alone and need no lease. Without devices there is nothing to wait for.
    """
    requirement = requirement_of_item(request.node)
    if requirement is None:
        raise UsageError(f"{request.node.nodeid} has no requirement", hint="add @requirement(…) to the test")
    context = request.config.stash[CONTEXT]
    if not hasattr(request.config, "workerinput") or not context.facts.devices:
        yield requirement
        return
    wanted = None if runs_alone(requirement, context.facts) else requirement.devices
    leases, began = Leases(context.request.report, context.facts.min_node_devices), time.monotonic()
    with leases.lease(request.node.nodeid, wanted, reserved_class=requirement.only_user_of):
        request.node.user_properties.append((WAITED, round(time.monotonic() - began, 3)))
        yield requirement


@pytest.fixture
def scenario(lease: Requirement, world: World) -> Iterator[Scenario]:
    """Yield a new namespace for one test, and the verbs for what is in it."""
    with new_scenario(world, lease.id) as made:
        yield made


@pytest.fixture
def admin_scenario(lease: Requirement, world: World) -> Iterator[Scenario]:
    """Yield a second namespace, labelled for admin access to devices."""
    with new_scenario(world, lease.id) as made:
        made.label_namespace("resource.kubernetes.io/admin-access", "true")
        yield made


@pytest.fixture
def hardware(world: World) -> Iterator[Hardware]:
    """Yield the driver's hardware, which a test may change. It is restored afterwards."""
    with restored_hardware(world) as made:
        yield made


@pytest.fixture
def daemon(world: World) -> Iterator[Daemon]:
    """Yield the driver's pods, which a test may delete, update and keep off a node. They are restored afterwards."""
    with restored_driver(world) as made:
        yield made


@pytest.fixture
def releases(scenario: Scenario, world: World) -> Iterator[InstalledRelease]:
    """Yield the release of the driver that is installed, which a test may change. This release is installed again afterwards."""
    with restored_release(world, scenario.ledger.clean_up) as made:
        yield made


@pytest.fixture
def churn(request: pytest.FixtureRequest, scenario: Scenario, driver: Driver, daemon: Daemon, node: Node) -> Churn:
    """Return the churn of pods on the node. Its note is for the report."""
    return Churn(scenario, driver, daemon, node, lambda text: request.node.user_properties.append((NOTE, text)))


@pytest.fixture
def node(nodes: frozenset[str], world: World, testbed: Testbed) -> Iterator[Node]:
    """Yield one of the nodes of the driver. It is restored afterwards."""
    with restored_node(min(nodes), world, testbed.cluster) as made:
        yield made


@pytest.fixture
def driver(world: World) -> Driver:
    """Return the driver under test."""
    return Driver(world)


@pytest.fixture(scope="session")
def kubelets(world_of_run: World) -> Kubelets:
    """Return the kubelets, with what they report about claims and devices."""
    return Kubelets(world_of_run)


@pytest.fixture(scope="session")
def account(world_of_run: World) -> Account:
    """Return the ServiceAccount of the driver's pods."""
    return Account(world_of_run)


@pytest.fixture(scope="session")
def nodes(world_of_run: World) -> frozenset[str]:
    """Return the names of the nodes on which the driver is expected."""
    return world_of_run.nodes
