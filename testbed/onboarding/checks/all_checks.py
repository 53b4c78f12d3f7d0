"""The checks of a driver file in a cluster. Each returns findings as data; a command prints them or raises them as one error."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from testbed import folders
from testbed.bringup import Testbed
from testbed.drivers.name_checks import WrongName, wrong_names
from testbed.images.basics import WORKLOAD
from testbed.models.driver_file import DriverFile, load_companions
from testbed.onboarding.checks.class_findings import class_findings
from testbed.onboarding.checks.finding import Blame, Finding
from testbed.onboarding.checks.trial_findings import findings_of
from testbed.onboarding.checks.trials import try_devices
from testbed.providers.base import Capability
from testbed.vocabulary import budgets
from testbed.vocabulary.world import World
from testbed.waiting import Budget


def world_on(testbed: Testbed, driver_file: DriverFile, process: str = "") -> World:
    """Return what the vocabulary needs to use a testbed's devices. Objects get the label of the process, to be found if it is killed."""
    return World(
        testbed.owner,
        testbed.kube,
        driver_file,
        folders.data("manifests") / "suites",
        driver_file.probe.image or testbed.config.images.workload or WORKLOAD.reference,
        process or f"{secrets.token_hex(4)}-check",
        load_companions(driver_file),
        testbed.cluster,
        testbed.kept_nodes,
        testbed.folder,
    )


def check_on(testbed: Testbed, driver_file: DriverFile, process: str = "") -> list[Finding]:
    """Return all findings in a cluster. Devices are only tried if all names exist, and the testbed may create pods."""
    names = check_names(testbed, driver_file)
    if names or Capability.MAKE_OBJECTS not in testbed.cluster.capabilities:
        return names
    return use_devices(world_on(testbed, driver_file, process))


def check_names(testbed: Testbed, driver_file: DriverFile) -> list[Finding]:
    """Return the names of the driver file that do not exist in the cluster."""
    return name_findings(wrong_names(testbed.kube, driver_file))


def name_findings(problems: Iterable[WrongName]) -> list[Finding]:
    """Return wrong names as findings."""
    return [Finding(Blame.FILE, each.what, each.key) for each in problems]


def use_devices(world: World, budget: Budget = budgets.RUN) -> list[Finding]:
    """Return what is wrong with the classes, or else with a first device of each on each node, with and without a claim.

    A driver has 45 s to prepare a claim. With a shorter budget, a silent driver is only reported as not tried.
    """
    return class_findings(world) or findings_of(try_devices(world, budget=budget), world.driver_file)
