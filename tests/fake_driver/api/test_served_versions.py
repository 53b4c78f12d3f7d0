from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from fake_driver.api.client import ApiClient
from fake_driver.api.served_versions import ServedVersion, discover
from fake_driver.devices.model import Device, Taint
from fake_driver.errors import ApiError
from fake_driver.publishing.slices import Owner, for_node

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

SLICES = for_node("gpu.example", Owner("n", "u"), (Device("gpu-0", "gpu", {"i": 1}, {}, taints=(Taint("a", "None"),)),))


@pytest.mark.parametrize(
    ("versions", "minor", "expected"),
    [
        (["v1alpha3", "v1", "v1beta1"], "37", ServedVersion("v1")),
        (["v1beta1", "v1beta2"], "35+", ServedVersion("v1beta2")),
        (["v1beta1"], "34", ServedVersion("v1beta1", separate_counter_slices=False)),
        (["v1"], "", ServedVersion("v1")),
    ],
)
def test_the_newest_version_that_both_support_is_used(
    server: str, fake_api: FakeApi, versions: list[str], minor: str, expected: ServedVersion
) -> None:
    fake_api.versions, fake_api.minor = versions, minor
    with contextlib.closing(ApiClient(server)) as api:
        assert discover(api) == expected


def test_a_server_without_a_supported_version_is_an_error_that_lists_both(server: str, fake_api: FakeApi) -> None:
    fake_api.versions = ["v1alpha3"]
    with (
        contextlib.closing(ApiClient(server)) as api,
        pytest.raises(ApiError, match="the server serves v1alpha3, but the driver supports v1,"),
    ):
        discover(api)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_converting_a_slice_there_and_back_changes_nothing(version: str) -> None:
    for slice_ in (*SLICES, *for_node("gpu.example", Owner("n", "u"), ())):
        out = ServedVersion(version).from_v1(slice_)
        assert out["apiVersion"] == f"resource.k8s.io/{version}"
        assert ServedVersion(version).to_v1(out) == slice_


def test_v1beta1_nests_the_fields_of_a_device_below_basic() -> None:
    (device,) = ServedVersion("v1beta1").from_v1(SLICES[0])["spec"]["devices"]
    assert device.keys() == {"name", "basic"}
    assert device["basic"].keys() == {"attributes", "taints"}


def test_paths_contain_the_version() -> None:
    assert (
        ServedVersion("v1beta1").path("resourceslices", "a b") == "/apis/resource.k8s.io/v1beta1/resourceslices/a%20b"
    )
