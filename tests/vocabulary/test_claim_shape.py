"""Claims of a scenario get the shape that the driver file declares."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.models.driver.devices import ClaimShape
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.models.driver_sections import Partitions
from testbed.vocabulary.claim_shape import with_claim_shape
from testbed.vocabulary.claims import allocated
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes import cluster
from tests.fakes.driver_files import with_values


@pytest.fixture
def plain() -> DriverFile:
    return load_driver_file(cluster.driver_path())


def _with_shape(driver_file: DriverFile, **shape: Any) -> DriverFile:
    return with_values(driver_file, "devices", claim=ClaimShape.model_validate_json(json.dumps(shape)))


def _claim(*requests: dict[str, Any], **more: Any) -> Any:
    return {"kind": "ResourceClaim", "metadata": {"name": "it"}, "spec": {"devices": {"requests": [*requests], **more}}}


def _exactly(name: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": cluster.DRIVER, **fields}}


def test_a_claim_for_a_driver_that_accepts_all_claims_is_unchanged(plain: DriverFile) -> None:
    claim = _claim(_exactly())
    assert with_claim_shape(claim, plain) is claim


@pytest.mark.parametrize(
    ("counts", "fields"), [("all", {"allocationMode": "All"}), ([4, 2], {"count": 2}), ([1, 2], {}), ([1], {})]
)
def test_a_request_has_the_smallest_count_that_the_driver_accepts(
    plain: DriverFile, counts: Any, fields: dict[str, Any]
) -> None:
    claim = _claim(_exactly(), {"name": "any", "firstAvailable": [_exactly()["exactly"]]})
    one, other = with_claim_shape(claim, _with_shape(plain, counts=counts))["spec"]["devices"]["requests"]
    assert one == _exactly(**fields)
    assert other["firstAvailable"] == [_exactly(**fields)["exactly"]]
    assert claim["spec"]["devices"]["requests"][0] == _exactly()  # the manifest itself is unchanged


@pytest.mark.parametrize(
    "written",
    [
        {"count": 3},
        {"allocationMode": "All"},
        {"selectors": [{"cel": {"expression": 'device.attributes["d"].uuid == "a"'}}]},
        {"deviceClassName": "mig.example.com"},
        {"deviceClassName": "nic.example.com"},
    ],
)
def test_a_request_that_says_what_it_wants_keeps_it(plain: DriverFile, written: dict[str, Any]) -> None:
    special = with_values(
        _with_shape(plain, counts="all"),
        "optional",
        partitions=Partitions.model_validate_json('{"class": "mig.example.com"}'),
    )
    (made,) = with_claim_shape(_claim(_exactly(**written)), special, ["nic.example.com"])["spec"]["devices"]["requests"]
    assert made == _exactly(**written)


def test_a_claim_requests_the_classes_that_the_driver_needs_too(plain: DriverFile) -> None:
    needs = _with_shape(plain, **{"with": ["nic.example.com", "channel.example.com"]})
    claim = _claim(
        _exactly(), _exactly("nic", deviceClassName="nic.example.com"), constraints=[{"matchAttribute": "a/b"}]
    )
    devices = with_claim_shape(claim, needs)["spec"]["devices"]
    assert [each["exactly"]["deviceClassName"] for each in devices["requests"]] == [
        *(cluster.DRIVER, "nic.example.com", "channel.example.com")
    ]
    assert devices["constraints"] == [{"matchAttribute": "a/b", "requests": ["gpu", "nic"]}]


def test_devices_of_an_added_request_are_not_those_of_the_claim(plain: DriverFile) -> None:
    made = with_claim_shape(_claim(_exactly()), _with_shape(plain, **{"with": ["nic.example.com"]}))
    names = [each["name"] for each in made["spec"]["devices"]["requests"]]
    results = [{"request": name, "driver": "d", "pool": "p", "device": name} for name in names]
    assert [each.name for each in allocated({"status": {"allocation": {"devices": {"results": results}}}})] == ["gpu"]


def test_a_claim_has_configuration_if_the_driver_needs_it(plain: DriverFile) -> None:
    needs = _with_shape(plain, configuration="required")
    assert needs.configuration
    assert needs.configuration.one
    opaque = {"driver": cluster.DRIVER, "parameters": needs.configuration.one.parameters}
    assert with_claim_shape(_claim(_exactly()), needs)["spec"]["devices"]["config"] == [{"opaque": opaque}]
    own = {"opaque": {"driver": cluster.DRIVER, "parameters": {}}}
    assert with_claim_shape(_claim(_exactly(), config=[own]), needs)["spec"]["devices"]["config"] == [own]


def test_an_allocation_has_configuration_if_the_driver_needs_it(plain: DriverFile) -> None:
    status = {"allocation": {"devices": {"results": [{"request": "gpu"}]}}}
    written = {"kind": "ResourceClaim", "metadata": {"name": "it"}, "status": status}
    made = with_claim_shape(written, _with_shape(plain, configuration="required"))
    (entry,) = made["status"]["allocation"]["devices"]["config"]
    assert (entry["source"], entry["opaque"]["driver"]) == ("FromClaim", cluster.DRIVER)
    assert "spec" not in made


def test_other_objects_are_unchanged(plain: DriverFile) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "it"}, "spec": {"containers": []}}
    assert with_claim_shape(pod, _with_shape(plain, counts="all")) is pod


def test_a_claim_of_a_scenario_has_the_shape(world: Callable[..., World], plain: DriverFile) -> None:
    with new_scenario(replace(world(), driver_file=_with_shape(plain, counts=[2])), "CLAIM-010") as scenario:
        scenario.apply("basic/claim-by-name.yaml")
        assert scenario.claim("my-device").requested_counts == (2,)
