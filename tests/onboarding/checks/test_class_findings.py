"""A class that selects nothing is a mistake of the driver file, if the scheduler finds no device for it either."""

from __future__ import annotations

from typing import Any

from testbed.onboarding.checks.all_checks import world_on
from testbed.onboarding.checks.class_findings import class_findings
from testbed.onboarding.checks.finding import Finding
from tests.fakes import cluster
from tests.fakes.cluster import FakeTestbed
from tests.fakes.driver_files import with_values

OF_TYPE = "device.driver == 'gpu.dra-testbed.example' && device.attributes['gpu.dra-testbed.example'].{} == 'F200'"


def _findings(made: FakeTestbed, expression: str, **changed: Any) -> list[Finding]:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    made.kube.put("DeviceClass", made.driver_file.device_class, spec=spec)
    return class_findings(world_on(made, with_values(made.driver_file, **changed)))  # type: ignore[arg-type]


def _unschedulable(made: FakeTestbed) -> None:
    """Let the scheduler find no device for any pod."""

    def react(kube: Any) -> None:
        for (kind, _, _), pod in kube.objects.items():
            if kind == "Pod":
                message = "0/2 nodes are available: 2 cannot allocate all claims."
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
                pod["status"] = {"phase": "Pending", "conditions": [condition]}

    made.kube.react = react


def test_a_class_that_selects_devices_is_right() -> None:
    assert _findings(cluster.make(), "device.driver == 'gpu.dra-testbed.example'") == []


def test_a_class_that_selects_nothing_is_reported_with_the_values_that_exist() -> None:
    made = cluster.make()
    _unschedulable(made)
    (found,) = _findings(made, OF_TYPE.format("model"))
    assert found.key == "spec.devices.classes[0]"
    assert "selects none of the 8 devices that gpu.dra-testbed.example publishes" in found.what
    assert "their model is F100" in found.what


def test_an_attribute_that_no_device_has_is_named_with_a_similar_one() -> None:
    made = cluster.make()
    _unschedulable(made)
    (found,) = _findings(made, OF_TYPE.format("modell"))
    assert "none has an attribute modell; did you mean model?" in found.what


def test_the_scheduler_has_the_last_word() -> None:
    assert _findings(cluster.make(), OF_TYPE.format("model")) == []


def test_without_devices_nothing_is_known() -> None:
    made = cluster.make("slices-missing")
    _unschedulable(made)
    assert _findings(made, OF_TYPE.format("model")) == []
