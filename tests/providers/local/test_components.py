"""The command lines and configuration files of the components."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local import components
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.components import ClusterSettings
from testbed.providers.local.host import Host
from testbed.providers.local.provider import LocalProvider


@pytest.fixture
def settings() -> ClusterSettings:
    programs = {name: Path("/programs") / name for name in LocalProvider().programs()}
    spec = ClusterSpec("1.37.1", feature_gates={"B": False, "A": True}, runtime_config={"api/alpha": "true"})
    host = Host(True, True, 0, 1, True, True, (6, 1), ())
    return ClusterSettings("dev", spec, Artifacts(programs), Addresses(140), host, Path("/pki"), Path("/etcd"))


def test_authorization_is_node_and_rbac_with_node_restriction(settings: ClusterSettings) -> None:
    line = components.api_server(settings)

    assert "--authorization-mode=Node,RBAC" in line
    assert "--enable-admission-plugins=NodeRestriction" in line


def test_every_component_gets_the_feature_gates(settings: ClusterSettings) -> None:
    for line in (
        components.api_server(settings),
        components.controller_manager(settings),
        components.scheduler(settings),
    ):
        assert "--feature-gates=A=true,B=false" in line
    assert json.loads(components.kubelet_configuration(settings, "/g"))["featureGates"] == {"A": True, "B": False}


def test_the_api_server_gets_the_runtime_config(settings: ClusterSettings) -> None:
    assert "--runtime-config=api/alpha=true" in components.api_server(settings)


def test_etcd_listens_only_on_loopback(settings: ClusterSettings) -> None:
    urls = [word.split("=", 1)[1] for word in components.etcd(settings) if "-urls=" in word]

    assert urls
    assert all(url.startswith("http://127.0.0.1:") for url in urls)


def test_containerd_enables_cdi_and_nri_and_works_without_a_missing_capability(settings: ClusterSettings) -> None:
    config = tomllib.loads(components.containerd_configuration(settings))
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]

    assert runtime["enable_cdi"] is True
    assert runtime["cdi_spec_dirs"] == ["/etc/cdi", "/var/run/cdi"]
    assert runtime["restrict_oom_score_adj"] is True
    assert config["plugins"]["io.containerd.nri.v1.nri"]["disable"] is False


def test_containers_get_the_masks_of_the_base_spec_instead_of_the_kubelets(settings: ClusterSettings) -> None:
    runtime = tomllib.loads(components.containerd_configuration(settings))["plugins"]["io.containerd.cri.v1.runtime"]

    assert runtime["containerd"]["runtimes"]["runc"]["base_runtime_spec"] == components.CONTAINER_SPEC
    assert runtime["disable_proc_mount"] is True


def test_a_kubelet_has_its_own_cgroup_and_refuses_anonymous_requests(settings: ClusterSettings) -> None:
    config = json.loads(components.kubelet_configuration(settings, "/dra-testbed/dev.140/node-1"))

    assert config["cgroupRoot"] == "/dra-testbed/dev.140/node-1"
    assert config["authentication"]["anonymous"]["enabled"] is False
    assert config["authorization"]["mode"] == "Webhook"


def test_pods_are_given_the_clusters_dns(settings: ClusterSettings) -> None:
    config = json.loads(components.kubelet_configuration(settings, "/g"))

    assert (config["clusterDNS"], config["clusterDomain"]) == (["10.140.128.10"], "cluster.local")


def test_the_api_server_calls_webhooks_without_kube_proxy(settings: ClusterSettings) -> None:
    assert "--enable-aggregator-routing=true" in components.api_server(settings)


def test_the_pods_of_each_node_have_their_own_range(settings: ClusterSettings) -> None:
    ranges = [json.loads(components.pod_network(settings, n))["plugins"][0]["ipam"]["ranges"] for n in (1, 2)]

    assert ranges[0] != ranges[1]


def test_every_program_that_a_node_runs_is_mounted_into_it(settings: ClusterSettings) -> None:
    said = components.node_programs(settings.artifacts.programs)
    lines = {target: source for source, target in map(str.split, said.splitlines())}

    assert lines["/usr/local/bin/kubelet"] == "/programs/kubelet"
    assert lines["/usr/local/bin/kube-proxy"] == "/programs/kube-proxy"
    assert lines["/opt/cni/bin/ptp"] == "/programs/cni-ptp"


def test_the_whole_folder_of_runc_is_mounted(settings: ClusterSettings) -> None:
    lines = {
        target: source
        for source, target in map(str.split, components.node_programs(settings.artifacts.programs).splitlines())
    }
    binary = re.search(r'BinaryName = "(.+)"', components.containerd_configuration(settings))

    assert binary
    folder, _, name = binary[1].rpartition("/")
    assert Path(lines[folder]) / name == settings.artifacts.programs["runc"]
