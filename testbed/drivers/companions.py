"""A driver under test and its companions, which share a cluster: installed together, waited for together. Called by bringup.

The first one is the driver under test. The hardware that is asked for is asked of it, and of those beside it that can pretend to have some.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.drivers import name_checks
from testbed.drivers.install import install, manifests, takes_hardware
from testbed.drivers.ready import wait_ready
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile, load_companions, load_driver_file


def load_with_companions(path: Path) -> tuple[DriverFile, ...]:
    """The driver of that file, and those that it names."""
    subject = load_driver_file(path)
    return subject, *load_companions(subject)


def install_all(
    kube: Kube, drivers: Sequence[DriverFile], owner: Owner, *, image: str = "", hardware: Path | None = None
) -> None:
    """Install all of them, and return when all of them serve; they start side by side."""
    for each in drivers:
        install(kube, each, owner, image=image, hardware=_hardware(each, drivers, hardware))
    for each in drivers:
        _wait_for(kube, each)


def _wait_for(kube: Kube, driver_file: DriverFile) -> None:
    """Once it serves, or is looked for in the wrong place, the driver file may be wrong; the tests would blame the driver."""
    try:
        wait_ready(kube, driver_file)
    except (WaitTimeout, DriverFailed) as late:
        wrong = name_checks.driver_name_problems if isinstance(late, DriverFailed) else name_checks.pod_problems
        try:
            name_checks.raise_problems(driver_file, wrong(kube, driver_file))
        except UsageError as refused:
            raise refused from late
        raise
    name_checks.refuse_wrong_names(kube, driver_file)


def all_manifests(drivers: Sequence[DriverFile], *, image: str = "", hardware: Path | None = None) -> list[Object]:
    """All objects of all of them; what several bring, as their namespace, is there once."""
    found: list[Object] = []
    for each in drivers:
        of_one = manifests(each, image=image, hardware=_hardware(each, drivers, hardware))
        found += [manifest for manifest in of_one if manifest not in found]
    return found


def _hardware(one: DriverFile, drivers: Sequence[DriverFile], hardware: Path | None) -> Path | None:
    return hardware if one is drivers[0] or takes_hardware(one) else None
