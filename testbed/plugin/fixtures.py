"""The fixtures of the suites. They exist only in sessions that judge a driver; nothing here decides anything."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testbed import bringup, folders
from testbed.bringup import Testbed
from testbed.conformance.context import RunContext
from testbed.conformance.leases import Leases
from testbed.conformance.requirement import Requirement
from testbed.conformance.selection import runs_alone
from testbed.errors import UsageError
from testbed.images.basics import WORKLOAD
from testbed.models.driver_file import load_companions, load_driver_file
from testbed.plugin import serial_tests
from testbed.plugin.markers import requirement_of_item
from testbed.vocabulary.cluster.accounts import Account
from testbed.vocabulary.cluster.kubelets import Kubelets
from testbed.vocabulary.cluster.nodes import Node, restored_node
from testbed.vocabulary.driver.daemon import Daemon, restored_driver
from testbed.vocabulary.driver.driver import Driver
from testbed.vocabulary.driver.hardware import Hardware, restored_hardware
from testbed.vocabulary.scenario import Scenario, new_scenario
from testbed.vocabulary.world import World

CONTEXT = pytest.StashKey[RunContext]()
WAITED = "waited"  # the property of a test that tells the controller how long it stood in the queue for its devices


@pytest.fixture(scope="session")
def testbed(pytestconfig: pytest.Config) -> Testbed:
    """The testbed that `--testbed` names."""
    return bringup.attach(pytestconfig.stash[CONTEXT].request.testbed)


@pytest.fixture(scope="session")
def world(pytestconfig: pytest.Config, testbed: Testbed) -> World:
    """What the words know about this run."""
    context = pytestconfig.stash[CONTEXT]
    manifests = folders.data("manifests") / "suites"
    image = testbed.config.images.workload or WORKLOAD.reference
    driver_file = load_driver_file(context.driver_file)
    process = f"{context.session}-{getattr(pytestconfig, 'workerinput', {}).get('workerid', 'main')}"
    companions = load_companions(driver_file)
    return World(testbed.owner, testbed.kube, driver_file, manifests, image, process, companions, testbed.cluster)


@pytest.fixture(autouse=True)
def _undisturbed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A disruptive test leaves the cluster as it found it."""
    if serial_tests.is_disruptive(request.node):
        yield from serial_tests.cluster_unchanged(request.config, request.getfixturevalue("world"), request.node.nodeid)
    else:
        yield


@pytest.fixture
def lease(request: pytest.FixtureRequest) -> Iterator[Requirement]:
    """The devices that the test's requirement asks for are nobody else's until its clean-up is complete. Who runs alone needs none."""
    requirement = requirement_of_item(request.node)
    if requirement is None:
        raise UsageError(f"{request.node.nodeid} has no requirement", hint="tie it to one with @requirement(…)")
    if not hasattr(request.config, "workerinput"):
        yield requirement
        return
    context = request.config.stash[CONTEXT]
    wanted = None if runs_alone(requirement, context.facts) else requirement.devices
    leases, asked = Leases(context.request.report, context.facts.min_node_devices), time.monotonic()
    with leases.lease(request.node.nodeid, wanted, reserved_class=requirement.only_user_of):
        request.node.user_properties.append((WAITED, round(time.monotonic() - asked, 3)))
        yield requirement


@pytest.fixture
def scenario(lease: Requirement, world: World) -> Iterator[Scenario]:
    """An empty namespace for one test, and the words for what it puts there."""
    with new_scenario(world, lease.id) as made:
        yield made


@pytest.fixture
def admin_scenario(lease: Requirement, world: World) -> Iterator[Scenario]:
    """A second namespace, which its administrator has labelled for admin access to devices."""
    with new_scenario(world, lease.id) as made:
        made.label_namespace("resource.kubernetes.io/admin-access", "true")
        yield made


@pytest.fixture
def hardware(world: World) -> Iterator[Hardware]:
    """The driver's hardware, which a test may change; it is as before afterwards."""
    with restored_hardware(world) as made:
        yield made


@pytest.fixture
def daemon(world: World) -> Iterator[Daemon]:
    """The driver's pods, which a test may end, keep away from a node and update."""
    with restored_driver(world) as made:
        yield made


@pytest.fixture
def node(nodes: frozenset[str], world: World, testbed: Testbed) -> Iterator[Node]:
    """One of the nodes where the driver is expected."""
    with restored_node(min(nodes), world, testbed.cluster) as made:
        yield made


@pytest.fixture(scope="session")
def driver(world: World) -> Driver:
    """The driver under test."""
    return Driver(world)


@pytest.fixture(scope="session")
def kubelets(world: World) -> Kubelets:
    """The kubelets, and what they know of claims and devices."""
    return Kubelets(world)


@pytest.fixture(scope="session")
def account(world: World) -> Account:
    """The account that the driver's pods have at the API server."""
    return Account(world)


@pytest.fixture(scope="session")
def nodes(driver: Driver) -> frozenset[str]:
    """The names of the nodes where the driver is expected."""
    return driver.nodes
