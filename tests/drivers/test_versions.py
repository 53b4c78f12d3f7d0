from __future__ import annotations

from typing import Any

from testbed.drivers.versions import images_of
from testbed.errors import ApiError
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes import cluster
from tests.fakes.kube import FakeKube

ID = "localhost/driver@sha256:" + "a" * 64


def _driver_file() -> DriverFile:
    return load_driver_file(cluster.driver_path())


def _put(kube: FakeKube, name: str, image_id: str, *, init: str = "") -> None:
    driver_file = _driver_file()
    key, _, value = driver_file.pods.selector.partition("=")
    images = {"init": init, "plugin": "localhost/driver:1"} if init else {"plugin": "localhost/driver:1"}
    statuses = {"init": "sha256:init", "plugin": image_id}
    kube.put(
        "Pod", name, driver_file.pods.namespace, metadata={"labels": {key: value}},
        spec={
            "initContainers": [{"name": "init", "image": init}] if init else [],
            "containers": [{"name": "plugin", "image": "localhost/driver:1"}],
        },
        status={"containerStatuses": [{"name": each, "imageID": statuses[each]} for each in images]},
    )  # fmt: skip


def test_the_images_of_a_drivers_pods_have_the_ids_that_nodes_report() -> None:
    kube: Any = FakeKube()
    _put(kube, "a", ID, init="localhost/init:2")
    _put(kube, "b", ID)

    found = images_of(kube, [_driver_file()])

    assert found == {_driver_file().driver: {"localhost/driver:1": ID, "localhost/init:2": "sha256:init"}}


def test_nodes_that_run_different_images_of_one_name_are_shown() -> None:
    kube: Any = FakeKube()
    _put(kube, "a", "sha256:new")
    _put(kube, "b", "sha256:old")
    _put(kube, "c", "")

    assert images_of(kube, [_driver_file()])[_driver_file().driver] == {"localhost/driver:1": "sha256:new, sha256:old"}


def test_without_permission_no_images_are_known() -> None:
    class Refusing(FakeKube):
        def list(self, *_: Any, **__: Any) -> Any:
            raise ApiError("GET pods", 403, "Forbidden", "no")

    kube: Any = Refusing()

    assert images_of(kube, [_driver_file()]) == {_driver_file().driver: {}}
