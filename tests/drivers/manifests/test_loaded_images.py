from __future__ import annotations

import copy
from typing import Any

import pytest

from testbed.drivers.manifests.loaded_images import unused_images, use_loaded_images

LOADED = ("localhost/acme/driver:1", "localhost/acme/tool:latest")


def _daemonset(*containers: dict[str, Any]) -> dict[str, Any]:
    spec = {"initContainers": [{"name": "init", "image": "busybox"}], "containers": list(containers)}
    return {"kind": "DaemonSet", "metadata": {"name": "driver"}, "spec": {"template": {"spec": spec}}}


def _container(image: str, policy: str | None = None) -> dict[str, Any]:
    return {"name": "plugin", "image": image, **({"imagePullPolicy": policy} if policy else {})}


@pytest.mark.parametrize(
    ("image", "policy", "changed"),
    [
        ("localhost/acme/driver:1", None, _container("localhost/acme/driver:1")),
        ("localhost/acme/driver:1", "Always", _container("localhost/acme/driver:1", "IfNotPresent")),
        ("localhost/acme/driver:1", "Never", _container("localhost/acme/driver:1", "Never")),
        ("registry.example/a/driver:v9", "IfNotPresent", _container("localhost/acme/driver:1", "IfNotPresent")),
        ("registry.example/driver@sha256:" + "a" * 64, None, _container("localhost/acme/driver:1")),
        ("localhost/acme/tool", None, _container("localhost/acme/tool", "IfNotPresent")),
        ("registry.example/other:1", "Always", _container("registry.example/other:1", "Always")),
    ],
)
def test_a_container_uses_the_loaded_image(image: str, policy: str | None, changed: dict[str, Any]) -> None:
    vendors = _daemonset(_container(image, policy))
    before = copy.deepcopy(vendors)

    (made,), changes = use_loaded_images([vendors], LOADED)

    assert made == _daemonset(changed)
    assert vendors == before
    assert bool(changes) == (made != before)


def test_each_change_is_described() -> None:
    vendors = _daemonset(_container("registry.example/driver:2", "Always"))

    plugin = "container plugin of DaemonSet driver"
    assert use_loaded_images([vendors], LOADED)[1] == [
        f"{plugin}: image registry.example/driver:2 is localhost/acme/driver:1, which is loaded into the nodes",
        f"{plugin}: imagePullPolicy Always is IfNotPresent",
    ]


def test_of_two_loaded_images_that_fit_none_is_chosen() -> None:
    vendors = _daemonset(_container("registry.example/driver:3"))

    assert use_loaded_images([vendors], ["localhost/driver:1", "localhost/driver:2"]) == ([vendors], [])


def test_without_loaded_images_nothing_is_changed() -> None:
    vendors = _daemonset(_container("registry.example/driver:3", "Always"))

    assert use_loaded_images([vendors], ()) == ([vendors], [])


def test_images_that_no_container_uses_are_found() -> None:
    assert unused_images([_daemonset(_container("localhost/acme/driver:1"))], LOADED) == ["localhost/acme/tool:latest"]


def test_the_pods_of_a_cron_job_use_the_loaded_image() -> None:
    template = {"template": {"spec": {"containers": [_container("driver:2")]}}}
    job = {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": template}}}

    (made,), _ = use_loaded_images([job], LOADED)

    assert "localhost/acme/driver:1" in str(made)
