"""CoreDNS's configuration and the objects of its Service."""

from __future__ import annotations

from pathlib import Path

from testbed.providers.local.addresses import Addresses
from testbed.providers.local.credentials import write_credentials
from testbed.providers.local.services import dns

ADDRESSES = Addresses(140)


def test_pods_get_the_names_of_the_cluster_and_nodes_none() -> None:
    cluster, others = dns.corefile(ADDRESSES, Path("/pki")).split("\n}\n", 1)

    assert cluster.startswith("cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {\n    bind 10.140.128.10 10.140.0.2\n")
    assert 'kubeconfig "/pki/coredns.kubeconfig"' in cluster
    assert others.startswith(".:53 {\n    bind 10.140.128.10 10.140.0.2 10.140.0.3\n")
    assert "rcode NXDOMAIN" in others
    assert dns.resolv_conf(ADDRESSES) == "nameserver 10.140.0.3\n"


def test_the_kubeconfig_in_the_configuration_is_written_for_the_user_with_the_permissions(tmp_path: Path) -> None:
    write_credentials(tmp_path, ADDRESSES, {})
    objects = {each["kind"]: each for each in dns.objects(ADDRESSES)}

    assert f'"{tmp_path}/coredns.kubeconfig"' in dns.corefile(ADDRESSES, tmp_path)
    assert (tmp_path / "coredns.kubeconfig").exists()
    assert objects["ClusterRoleBinding"]["subjects"][0]["name"] == dns.USER
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]


def test_the_service_has_the_address_that_pods_are_given_and_an_endpoint_on_the_control_plane() -> None:
    objects = {each["kind"]: each for each in dns.objects(ADDRESSES)}
    service, endpoints = objects["Service"], objects["EndpointSlice"]

    assert service["spec"]["clusterIP"] == ADDRESSES.dns_service
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert endpoints["endpoints"][0]["addresses"] == [ADDRESSES.control_plane]
    assert endpoints["ports"] == [
        {"name": "dns", "protocol": "UDP", "port": 53},
        {"name": "dns-tcp", "protocol": "TCP", "port": 53},
    ]
