"""The installed release of the driver under test: tests install the previous one, update it to this one, and go back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.drivers import releases
from testbed.errors import DriverFailed, TestbedError
from testbed.kube.client import Kube
from testbed.kube.ownership import Owner
from testbed.vocabulary.driver.daemon import Daemon
from testbed.vocabulary.world import World


@dataclass
class InstalledRelease:
    """The installed release. `way_back` undoes a replacement that has not finished."""

    world: World
    is_current: bool = True
    way_back: Callable[[], None] | None = None

    def install_previous(self) -> None:
        """Install the previous release, which is not judged. Raise TestbedError if it does not become ready."""
        try:
            self.downgrade()
        except DriverFailed as failed:
            raise TestbedError(
                f"the previous release of the driver does not run, so no update from it can be judged: {failed.what}",
                hint="install it alone: spec.install.previous of the driver file names its manifests and images",
            ) from failed

    def downgrade(self) -> None:
        """Replace this release by the previous one, and wait until it runs on all nodes. Raise DriverFailed if it does not."""
        daemon = Daemon(self.world)
        old, self.is_current, self.way_back = daemon.pods(), False, self.upgrade
        releases.replace_by_previous(*self._target, self.world.process)
        daemon.should_be_updated(old)
        releases.remove_what_previous_lacks(*self._target)
        self.way_back = None

    def upgrade(self) -> None:
        """Replace the previous release by this one, and wait until it runs on all nodes. Raise DriverFailed if it does not."""
        daemon = Daemon(self.world)
        old, self.way_back = daemon.pods(), self.downgrade
        releases.replace_by_current(*self._target)
        daemon.should_be_updated(old)
        releases.remove_what_current_lacks(*self._target)
        self.is_current, self.way_back = True, None

    def restore(self, clean_up: Callable[[], None]) -> None:
        """Install this release again, after `clean_up` has deleted the test's objects.

        A replacement that failed is undone first, because the release that prepared the test's claims can unprepare them.
        """
        try:
            if self.way_back:
                self.way_back()
            if not self.is_current:
                clean_up()
        finally:
            if not self.is_current:
                self.upgrade()

    @property
    def _target(self) -> tuple[Kube, Owner, Path]:
        return self.world.kube, self.world.owner, self.world.folder


@contextlib.contextmanager
def restored_release(world: World, clean_up: Callable[[], None]) -> Iterator[InstalledRelease]:
    """Yield the installed release for one test, and install this release again afterwards. `clean_up` deletes the test's objects."""
    made = InstalledRelease(world)
    try:
        yield made
    finally:
        made.restore(clean_up)
