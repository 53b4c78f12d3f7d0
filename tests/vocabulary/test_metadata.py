from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.drivers.slices import Device
from testbed.errors import DriverFailed
from testbed.vocabulary.metadata import read

DEVICE = {"driver": "d", "pool": "n", "name": "gpu-0", "attributes": {"model": {"string": "F100"}}}
FILE: Any = {
    "apiVersion": "metadata.resource.k8s.io/v1beta1",
    "metadata": {"name": "c", "uid": "u"},
    "podClaimName": "mine",
    "requests": [{"name": "r", "devices": [DEVICE]}],
}


def test_the_first_known_object_is_read() -> None:
    newer, older = ({**FILE, "apiVersion": f"metadata.resource.k8s.io/{version}"} for version in ("v9", "v1alpha1"))
    found = read("\n".join(map(json.dumps, (newer, FILE, {**older, "requests": []}))), "x")
    assert (found.claim, found.pod_claim) == (("c", "u"), "mine")
    assert found.devices == {Device("d", "n", "gpu-0")}
    assert found.attribute(Device("d", "n", "gpu-0"), "model") == {"string": "F100"}
    assert found.attribute(Device("d", "n", "gpu-1"), "model") == found.attribute(Device("d", "n", "gpu-0"), "x") == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "has no object of"), ('{"apiVersion": "x"} []', "has no object of"), ("{", "is not JSON")],
)
def test_what_nobody_can_read_is_the_drivers_fault(text: str, problem: str) -> None:
    with pytest.raises(DriverFailed, match=f"/path in the container {problem}"):
        read(text, "/path")
