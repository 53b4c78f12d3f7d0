"""Installs a driver under test with its companions in one cluster. Used by bringup.

The first driver is the one under test. A hardware file is passed to it, and to those companions whose templates use one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.drivers import name_checks
from testbed.drivers.install import adjusted_objects, describe_changes, install, manifests
from testbed.drivers.manifests.sources import takes_hardware
from testbed.drivers.ready import KeptNodes, expected_nodes, wait_ready
from testbed.drivers.releases import Releases
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.images.archives import names_in
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile, load_companions, load_driver_file


def load_with_companions(path: Path) -> tuple[DriverFile, ...]:
    """Return the driver of a driver file, followed by its companions."""
    driver = load_driver_file(path)
    return driver, *load_companions(driver)


def install_all(
    kube: Kube,
    drivers: Sequence[DriverFile],
    owner: Owner,
    *,
    kept: KeptNodes | None = None,
    image: str = "",
    hardware: Path | None = None,
    images_are_loaded: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Install all drivers, then wait until all are ready; `kept` are the nodes where they must run.

    With `images_are_loaded`, the archives in the driver files were loaded into the nodes. `report` is called with each change of
    a driver's manifests.
    """
    for each in drivers:
        given = _hardware(each, drivers, hardware)
        loaded = loaded_images(each) if images_are_loaded else ()
        install(kube, each, owner, image=image, hardware=given, loaded=loaded, report=_prefixed(report, each))
    for each in drivers:
        _wait_until_ready(kube, each, kept)


def releases_of(
    kube: Kube, drivers: Sequence[DriverFile], *, image: str, hardware: Path | None, images_are_loaded: bool
) -> Releases | None:
    """Return the objects of both releases of the driver under test, or None if its driver file names no previous one."""
    current = drivers[0]
    if current.previous is None:
        return None
    both = [
        adjusted_objects(
            kube, each, image=image, hardware=hardware, loaded=loaded_images(each) if images_are_loaded else ()
        )[0]
        for each in (current, current.previous)
    ]
    return Releases(current.driver, *both)


def image_archives(drivers: Sequence[DriverFile]) -> list[Path]:
    """Return the archives to load for all drivers, and for the previous release of the one under test."""
    releases = [*drivers, *(each.previous for each in drivers[:1] if each.previous)]
    return list(dict.fromkeys(archive for each in releases if each.install for archive in each.install.images))


def loaded_images(driver_file: DriverFile) -> tuple[str, ...]:
    """Return the names of the images in the archives that a driver file names."""
    archives = driver_file.install.images if driver_file.install else ()
    return tuple(dict.fromkeys(name for archive in archives for name in names_in(archive)))


def _prefixed(report: Callable[[str], None], driver_file: DriverFile) -> Callable[[str], None]:
    return lambda change: report(f"driver {driver_file.driver}: {change}")


def _wait_until_ready(kube: Kube, driver_file: DriverFile, kept: KeptNodes | None) -> None:
    """Wait until a driver is ready. Raise UsageError if the driver file has wrong names, which tests would blame on the driver."""
    try:
        wait_ready(kube, driver_file, expected_nodes(kube, driver_file, kept))
    except (WaitTimeout, DriverFailed) as late:
        problems = name_checks.driver_name_problems if isinstance(late, DriverFailed) else name_checks.pod_problems
        try:
            name_checks.raise_problems(driver_file, problems(kube, driver_file))
        except UsageError as refused:
            raise refused from late
        raise
    name_checks.refuse_wrong_names(kube, driver_file)


def all_manifests(
    drivers: Sequence[DriverFile], *, image: str = "", hardware: Path | None = None, kubernetes: str = ""
) -> list[Object]:
    """Return the objects of all drivers. Objects that several have, such as their namespace, are listed once."""
    found: list[Object] = []
    for each in drivers:
        objects = manifests(each, image=image, hardware=_hardware(each, drivers, hardware), kubernetes=kubernetes)
        found += [manifest for manifest in objects if manifest not in found]
    return found


def planned_changes(drivers: Sequence[DriverFile], hardware: Path | None, kubernetes: str) -> list[str]:
    """Return the changes that installing the drivers on nodes with their images would make to their manifests."""
    return [
        f"driver {each.driver}: {change}"
        for each in drivers
        for change in describe_changes(
            each, loaded_images(each), hardware=_hardware(each, drivers, hardware), kubernetes=kubernetes
        )
    ]


def _hardware(driver: DriverFile, drivers: Sequence[DriverFile], hardware: Path | None) -> Path | None:
    return hardware if driver is drivers[0] or takes_hardware(driver) else None
