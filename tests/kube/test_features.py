from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import ApiError
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.kube.features import Features, parse_gates
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer

METRICS = """# HELP kubernetes_feature_enabled [BETA] whether it is on
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DRAAdminAccess",stage="BETA"} 1
kubernetes_feature_enabled{name="DRAPartitionableDevices",stage="ALPHA"} 0
kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1
kubernetes_feature_enabled_else{name="Other"} 1
go_goroutines 7
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made


@pytest.fixture
def kube(server: ApiServer, tmp_path: Path) -> Kube:
    return Kube(server.kubeconfig(tmp_path))


def test_gates_are_read_from_metrics() -> None:
    expected = {"DRAAdminAccess": True, "DRAPartitionableDevices": False, "DynamicResourceAllocation": True}
    assert parse_gates(METRICS) == expected


def test_version_gates_and_api_versions_are_read(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /metrics"] = (200, METRICS)
    found = features.read(kube)
    assert (found.version, found.resource_versions) == ("1.37.1", ("v1",))
    assert found.gates == parse_gates(METRICS)


def test_gates_that_may_not_be_read_are_none(kube: Kube) -> None:
    assert features.read(kube) == Features("1.37.1", None, ("v1",))


def test_a_server_error_is_raised(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /metrics"] = (500, {"message": "oops"})
    with pytest.raises(ApiError, match="oops"):
        features.gates(kube)


def test_the_preferred_version_comes_first(server: ApiServer, kube: Kube) -> None:
    versions = [{"version": "v1beta2"}, {"version": "v1"}]
    group = {"name": "resource.k8s.io", "versions": versions, "preferredVersion": {"version": "v1"}}
    server.answers["GET /apis"] = (200, {"groups": [group]})
    assert features.resource_versions(kube) == ("v1", "v1beta2")
    server.answers["GET /apis"] = (200, {"groups": []})
    assert features.resource_versions(kube) == ()
