"""The fixtures of the suites. They exist only in sessions that judge a driver; nothing here decides anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed import bringup, folders
from testbed.bringup import Testbed
from testbed.conformance.context import RunContext
from testbed.errors import UsageError
from testbed.images.basics import WORKLOAD
from testbed.models.driver_file import load_companions, load_driver_file
from testbed.plugin.marking import required
from testbed.vocabulary.driver import Driver
from testbed.vocabulary.scenario import Scenario, opened
from testbed.vocabulary.world import World

CONTEXT = pytest.StashKey[RunContext]()


@pytest.fixture(scope="session")
def testbed(pytestconfig: pytest.Config) -> Testbed:
    """The testbed that `--testbed` names."""
    return bringup.attach(pytestconfig.stash[CONTEXT].testbed)


@pytest.fixture(scope="session")
def world(pytestconfig: pytest.Config, testbed: Testbed) -> World:
    """What the words know about this run."""
    context = pytestconfig.stash[CONTEXT]
    manifests = folders.data("manifests") / "suites"
    image = testbed.config.images.workload or WORKLOAD.reference
    driver_file = load_driver_file(context.driver_file)
    companions = load_companions(driver_file)
    return World(testbed.owner, testbed.kube, driver_file, manifests, image, companions)


@pytest.fixture
def scenario(request: pytest.FixtureRequest, world: World) -> Iterator[Scenario]:
    """An empty namespace for one test, and the words for what it puts there."""
    requirement = required(request.node)
    if requirement is None:
        raise UsageError(f"{request.node.nodeid} has no requirement", hint="tie it to one with @requirement(…)")
    with opened(world, requirement.id) as made:
        yield made


@pytest.fixture
def admin_scenario(request: pytest.FixtureRequest, world: World) -> Iterator[Scenario]:
    """A second namespace, which its administrator has labelled for admin access to devices."""
    requirement = required(request.node)
    if requirement is None:
        raise UsageError(f"{request.node.nodeid} has no requirement", hint="tie it to one with @requirement(…)")
    with opened(world, requirement.id) as made:
        made.label_namespace("resource.kubernetes.io/admin-access", "true")
        yield made


@pytest.fixture(scope="session")
def node(nodes: frozenset[str]) -> str:
    """The name of one of the nodes where the driver is expected."""
    return min(nodes)


@pytest.fixture(scope="session")
def driver(world: World) -> Driver:
    """The driver under test."""
    return Driver(world)


@pytest.fixture(scope="session")
def nodes(driver: Driver) -> frozenset[str]:
    """The names of the nodes where the driver is expected."""
    return driver.nodes
