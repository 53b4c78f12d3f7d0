"""kube-proxy's configuration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.components import ClusterSettings
from testbed.providers.local.host import Host
from testbed.providers.local.services import proxy


@pytest.fixture
def settings() -> ClusterSettings:
    host = Host(True, True, 0, 1, True, True, (6, 1), ())
    spec = ClusterSpec("1.37.1", feature_gates={"A": True})
    return ClusterSettings("dev", spec, Artifacts({}), Addresses(140), host, Path("/pki"), Path("/etcd"))


def test_kube_proxy_uses_nftables_and_no_feature_gates(settings: ClusterSettings) -> None:
    config = json.loads(proxy.configuration(settings, "node-1"))

    assert (config["mode"], config["hostnameOverride"]) == ("nftables", "node-1")
    assert "featureGates" not in config


def test_the_limits_of_conntrack_are_not_changed_because_they_are_those_of_the_host(settings: ClusterSettings) -> None:
    limits = json.loads(proxy.configuration(settings, "node-1"))["conntrack"]

    assert limits == {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}


def test_the_oom_score_is_left_alone_only_where_it_cannot_be_lowered(settings: ClusterSettings) -> None:
    able = replace(settings, host=replace(settings.host, capabilities=1 << 24))

    assert json.loads(proxy.configuration(settings, "node-1"))["oomScoreAdj"] == 0
    assert "oomScoreAdj" not in json.loads(proxy.configuration(able, "node-1"))


def test_the_command_line_names_the_file_on_the_node() -> None:
    assert proxy.command()[:2] == ["/usr/local/bin/kube-proxy", "--config=/etc/dra-testbed/kube-proxy.json"]
