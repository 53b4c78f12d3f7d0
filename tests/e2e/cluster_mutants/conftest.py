"""An API server for the mutants of the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.binaries import minors
from testbed.kube.client import Kube
from tests.e2e.api_server import ApiServer, kube_client, running
from tests.e2e.cluster_mutants.objects import DEVICES, claim


@pytest.fixture(scope="package")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with running(ApiServer(tmp_path_factory.mktemp("server"), minors()[0])) as server:
        made = kube_client(server)
        made.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        for name in ("allocated", "without-device-status"):
            made.apply(claim(name, DEVICES.replace("adminAccess: true, ", "")))
        yield made
