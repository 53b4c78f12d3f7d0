from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import ApiClient
from fake_driver.errors import ApiError

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

ENTRY = {"driver": "gpu.dra-testbed.example", "pool": "worker", "device": "gpu-0"}


@pytest.fixture
def requested(fake_api: FakeApi) -> list[str]:
    """Return the paths that were requested."""
    found: list[str] = []
    fake_api.refuse = lambda _method, path: found.append(path)
    return found


@pytest.fixture
def claims(server: str) -> Iterator[ClaimClient]:
    with contextlib.closing(ApiClient(server)) as api:
        yield ClaimClient(api)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_a_claim_is_read_and_written_in_the_version_that_the_server_serves(
    claims: ClaimClient, fake_api: FakeApi, requested: list[str], version: str
) -> None:
    fake_api.versions = ["v1alpha3", version]
    claim = fake_api.claim()
    assert claims.get("default", "one")["metadata"]["uid"] == claim["uid"]
    requested.clear()
    claims.apply("default", "one", claim["uid"], [ENTRY], "me")
    assert fake_api.status() == [ENTRY]
    assert requested == [f"/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims/one/status"]


def test_a_version_that_is_no_longer_served_is_replaced(claims: ClaimClient, fake_api: FakeApi) -> None:
    claim = fake_api.claim()
    for versions in (["v1beta1"], ["v1", "v1beta2"], ["v1beta2"]):
        fake_api.versions = versions
        claims.apply("default", "one", claim["uid"], [ENTRY], "me")
    assert [body["apiVersion"].rpartition("/")[2] for _, body in fake_api.applied] == ["v1beta1", "v1", "v1beta2"]


def test_a_claim_that_does_not_exist_is_not_found_in_any_version(claims: ClaimClient, fake_api: FakeApi) -> None:
    for versions in (["v1"], ["v1beta1"]):
        fake_api.versions = versions
        with pytest.raises(ApiError, match="'gone' not found") as missing:
            claims.get("default", "gone")
        assert missing.value.status == 404


def test_another_error_than_404_starts_no_discovery(claims: ClaimClient, fake_api: FakeApi) -> None:
    requested: list[str] = []

    def refuse(_method: str, path: str) -> tuple[int, str]:
        requested.append(path)
        return 403, "no"

    fake_api.refuse = refuse
    with pytest.raises(ApiError, match="403: no"):
        claims.get("default", "one")
    assert len(requested) == 1
