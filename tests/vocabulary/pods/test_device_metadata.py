from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.conformance.verdicts import verdict_for
from testbed.drivers.published.slices import Device
from testbed.errors import DriverFailed
from testbed.models.requirement_enums import Verdict
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.pods.device_metadata import read

DEVICE = {"driver": "d", "pool": "n", "name": "gpu-0", "attributes": {"model": {"string": "F100"}}}
FILE: Any = {
    "apiVersion": "metadata.resource.k8s.io/v1beta1",
    "metadata": {"name": "c", "namespace": "here", "uid": "u", "generation": 2},
    "podClaimName": "mine",
    "requests": [{"name": "r", "devices": [DEVICE]}],
}


def test_the_first_known_object_is_read() -> None:
    newer, older = ({**FILE, "apiVersion": f"metadata.resource.k8s.io/{version}"} for version in ("v9", "v1alpha1"))
    found = read("\n".join(map(json.dumps, (newer, FILE, {**older, "requests": []}))), "x")
    assert (found.claim, found.pod_claim, found.generation) == (("here", "c", "u"), "mine", 2)
    assert found.devices == {Device("d", "n", "gpu-0")}
    assert found.attributes(Device("d", "n", "gpu-0")) == {"d/model": {"string": "F100"}}
    assert found.attributes(Device("d", "n", "gpu-1")) == {}


@pytest.mark.parametrize(
    ("versions", "is_newest_first"),
    [
        (["v1beta1"], True),
        (["v2", "v1", "v1beta2", "v1beta1", "v1alpha10", "v1alpha2"], True),
        (["v1alpha1", "v1beta1"], False),
        (["v1beta1", "v1"], False),
        (["v1beta1", "v1alpha2", "v1alpha10"], False),
    ],
)
def test_versions_are_compared_as_kubernetes_does(versions: list[str], is_newest_first: bool) -> None:
    objects = [{**FILE, "apiVersion": f"metadata.resource.k8s.io/{version}"} for version in versions]
    text = "".join(map(json.dumps, ({"apiVersion": "example.com/v1"}, *objects)))
    found = read(text, "x")
    assert (found.versions == found.newest_first) is is_newest_first


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "has no object of"), ('{"apiVersion": "x"} []', "has no object of"), ("{", "is not JSON")],
)
def test_an_unreadable_file_blames_the_driver(text: str, problem: str) -> None:
    with pytest.raises(DriverFailed, match=f"/path in the container {problem}"):
        read(text, "/path")


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"requests": [{"devices": [{"driver": "d", "name": "gpu-0"}]}]}, "has a device without 'pool'"),
        ({"requests": [{"devices": ["gpu-0"]}]}, "does not match the schema of its version"),
        ({"requests": {"name": "r"}}, "does not match the schema of its version"),
        ({"requests": [{"devices": [{**DEVICE, "attributes": {"model": "F100"}}]}]}, "does not match"),
        ({"metadata": None}, "does not match the schema of its version"),
        ({"metadata": {"generation": "first"}}, "does not match the schema of its version"),
    ],
)
def test_a_file_that_does_not_match_its_schema_blames_the_driver(part: Any, problem: str) -> None:
    with pytest.raises(DriverFailed, match=f"/path in the container {problem}") as raised:
        read(json.dumps({**FILE, **part}), "/path")
    assert verdict_for(raised.value) is Verdict.FAIL


def test_optional_fields_may_be_missing() -> None:
    found = read(json.dumps({"apiVersion": FILE["apiVersion"], "requests": [{"name": "r", "devices": None}]}), "x")
    assert (found.claim, found.generation, found.devices) == (("", "", ""), 0, NONE)
