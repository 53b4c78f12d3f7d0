"""The command lines: what the issue demands of them, for any spec."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from testbed.providers.base import ClusterSpec
from testbed.providers.local import components
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.components import Facts
from testbed.providers.local.host import Host
from testbed.providers.local.provider import LocalProvider


@pytest.fixture
def facts() -> Facts:
    programs = {name: Path("/programs") / name for name in LocalProvider().programs()}
    spec = ClusterSpec(
        "1.37.1", feature_gates={"B": False, "A": True}, runtime_config={"api/alpha": "true"}, programs=programs
    )
    host = Host(True, True, 0, 1, True, True, (6, 1), ())
    return Facts("dev", spec, Addresses(140), host, Path("/pki"), Path("/etcd"))


def test_authorisation_is_node_and_rbac_with_node_restriction(facts: Facts) -> None:
    line = components.api_server(facts)

    assert "--authorization-mode=Node,RBAC" in line
    assert "--enable-admission-plugins=NodeRestriction" in line


def test_gates_reach_every_component_of_the_control_plane_and_the_kubelet(facts: Facts) -> None:
    for line in (components.api_server(facts), components.controller_manager(facts), components.scheduler(facts)):
        assert "--feature-gates=A=true,B=false" in line
    assert json.loads(components.kubelet_configuration(facts, "/g"))["featureGates"] == {"A": True, "B": False}


def test_api_groups_are_served_as_asked(facts: Facts) -> None:
    assert "--runtime-config=api/alpha=true" in components.api_server(facts)


def test_etcd_listens_on_loopback_alone(facts: Facts) -> None:
    urls = [word.split("=", 1)[1] for word in components.etcd(facts) if "-urls=" in word]

    assert urls
    assert all(url.startswith("http://127.0.0.1:") for url in urls)


def test_containerd_has_cdi_and_nri_on_and_copes_with_a_missing_capability(facts: Facts) -> None:
    config = tomllib.loads(components.containerd_configuration(facts))
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]

    assert runtime["enable_cdi"] is True
    assert runtime["cdi_spec_dirs"] == ["/etc/cdi", "/var/run/cdi"]
    assert runtime["restrict_oom_score_adj"] is True
    assert config["plugins"]["io.containerd.nri.v1.nri"]["disable"] is False


def test_a_kubelet_has_a_cgroup_of_its_own_and_lets_nobody_in_unasked(facts: Facts) -> None:
    config = json.loads(components.kubelet_configuration(facts, "/dra-testbed/dev.140/node-1"))

    assert config["cgroupRoot"] == "/dra-testbed/dev.140/node-1"
    assert config["authentication"]["anonymous"]["enabled"] is False
    assert config["authorization"]["mode"] == "Webhook"


def test_each_nodes_pods_have_a_range_of_their_own(facts: Facts) -> None:
    ranges = [json.loads(components.pod_network(facts, n))["plugins"][0]["ipam"]["ranges"] for n in (1, 2)]

    assert ranges[0] != ranges[1]


def test_every_program_that_a_node_runs_is_bound_into_it(facts: Facts) -> None:
    said = components.node_programs(facts.spec.programs)
    lines = {target: source for source, target in map(str.split, said.splitlines())}

    assert lines["/usr/local/bin/kubelet"] == "/programs/kubelet"
    assert lines["/opt/cni/bin/ptp"] == "/programs/cni-ptp"


def test_runc_comes_with_its_folder_because_it_lays_an_overlay_over_it(facts: Facts) -> None:
    lines = {
        target: source for source, target in map(str.split, components.node_programs(facts.spec.programs).splitlines())
    }
    binary = re.search(r'BinaryName = "(.+)"', components.containerd_configuration(facts))

    assert binary
    folder, _, name = binary[1].rpartition("/")
    assert Path(lines[folder]) / name == facts.spec.programs["runc"]
