from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.drivers.releases import Releases
from testbed.errors import DriverFailed, TestbedError
from testbed.vocabulary.driver.installed_release import InstalledRelease, restored_release
from testbed.vocabulary.world import World
from tests.vocabulary.driver.test_daemon import NAMESPACE, READY, SPEC, Controller


def _daemonset(image: str) -> Any:
    spec = copy.deepcopy(SPEC)
    spec["template"]["spec"]["containers"][0]["image"] = image
    metadata = {"name": "driver", "namespace": NAMESPACE, "uid": "ds"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


@pytest.fixture
def installed(world: Callable[..., World], tmp_path: Path) -> tuple[World, Controller]:
    """Return a world whose testbed knows two releases, and the controller of its DaemonSets. This release is installed."""
    here = replace(world(), folder=tmp_path)
    Releases(here.driver_file.driver, [_daemonset("new")], [_daemonset("old")]).write(tmp_path)
    controller = Controller(here.kube, _daemonset("new")["spec"])
    found = here.kube.get("apps/v1", "DaemonSet", "driver", NAMESPACE)
    here.kube.apply(here.owner.mark(found))
    return here, controller


def _image(world: World) -> str:
    spec = world.kube.get("apps/v1", "DaemonSet", "driver", NAMESPACE)["spec"]
    return str(spec["template"]["spec"]["containers"][0]["image"])


def test_a_test_updates_from_the_previous_release(installed: tuple[World, Controller]) -> None:
    world, controller = installed
    release = InstalledRelease(world)
    release.install_previous()
    assert (_image(world), controller.made, release.is_current) == ("old", 4, False)
    release.upgrade()
    assert (_image(world), controller.made, release.is_current) == ("new", 6, True)


def test_this_release_is_installed_again_after_the_objects_of_the_test_are_deleted(
    installed: tuple[World, Controller],
) -> None:
    world, _ = installed
    during_clean_up = []
    with restored_release(world, lambda: during_clean_up.append(_image(world))) as release:
        release.downgrade()
    assert (during_clean_up, _image(world)) == (["old"], "new")


def test_a_previous_release_that_does_not_run_does_not_blame_the_driver(installed: tuple[World, Controller]) -> None:
    world, controller = installed
    controller.status = {"phase": "Running", "conditions": []}
    release = InstalledRelease(world)
    with pytest.raises(TestbedError, match=r"previous release of the driver does not run(.|\n)*is Running") as raised:
        release.install_previous()
    assert not isinstance(raised.value, DriverFailed)


@pytest.mark.parametrize("from_previous", [True, False])
def test_a_replacement_that_failed_is_undone(installed: tuple[World, Controller], from_previous: bool) -> None:
    world, controller = installed
    release = InstalledRelease(world)
    if from_previous:
        release.install_previous()
    controller.status = {"phase": "Running", "conditions": []}
    with pytest.raises(DriverFailed, match="to be ready again"):
        (release.upgrade if from_previous else release.downgrade)()
    controller.status = READY
    during_clean_up: list[str] = []
    release.restore(lambda: during_clean_up.append(_image(world)))
    assert during_clean_up == (["old"] if from_previous else [])
    assert (_image(world), release.is_current) == ("new", True)
