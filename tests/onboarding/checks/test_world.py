"""What tests and checks know about a testbed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from testbed.images.basics import WORKLOAD
from testbed.models.driver.probe import Probe
from testbed.models.driver_file import DriverFile
from testbed.onboarding.checks.all_checks import world_on
from tests.fakes import cluster


def _image(driver_file: DriverFile, **images: str) -> str:
    testbed = cluster.make()
    config = replace(testbed.config, images=testbed.config.images.model_copy(update=images))
    made: Any = replace(testbed, config=config)
    return world_on(made, driver_file).workload_image


def test_pods_of_tests_use_the_image_of_the_probe() -> None:
    file = cluster.make().driver_file
    probe = Probe.model_validate({"command": ("smi",), "image": "registry.example/tools:1"})
    tools = file.model_copy(update={"spec": file.spec.model_copy(update={"probe": probe})})
    assert _image(file) == WORKLOAD.reference
    assert _image(file, workload="registry.example/busybox:1") == "registry.example/busybox:1"
    assert _image(tools, workload="registry.example/busybox:1") == "registry.example/tools:1"
