"""The cluster's DNS: CoreDNS in the control plane, and the objects that make it the Service `kube-dns`. Used when a cluster is created.

The address of the Service belongs to the control plane, so that DNS also works on hosts without netfilter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.kube.client import Kube, Object
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.components import ClusterSettings

DOMAIN = "cluster.local"
USER = "system:coredns"
_CLIENT = "coredns.kubeconfig"
_ZONES = (DOMAIN, "in-addr.arpa", "ip6.arpa")
_PORTS = (("dns", "UDP"), ("dns-tcp", "TCP"))
_RIGHTS = "rbac.authorization.k8s.io"


def command(settings: ClusterSettings, corefile: Path) -> list[str]:
    """Return CoreDNS's command line."""
    return [str(settings.artifacts.programs["coredns"]), "-conf", str(corefile)]


def corefile(addresses: Addresses, pki: Path) -> str:
    """Return CoreDNS's configuration: pods can resolve names of the cluster. No other name exists, because a testbed has no way out.

    The answer for other names is NXDOMAIN: some C libraries ignore a refusal, and wait for seconds. Nodes have a resolver of their own,
    which knows no names at all: on an ordinary node, names of Services cannot be resolved.
    """
    served = f"{addresses.dns_service} {addresses.control_plane}"
    zones = " ".join(f"{zone}:53" for zone in _ZONES)
    return f"""{zones} {{
    bind {served}
    errors
    kubernetes {{
        kubeconfig "{pki / _CLIENT}"
    }}
    loadbalance
}}
.:53 {{
    bind {served} {addresses.resolver}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def resolv_conf(addresses: Addresses) -> str:
    """Return a node's /etc/resolv.conf. The resolver of this host cannot be reached from there, and every name would take seconds."""
    return f"nameserver {addresses.resolver}\n"


def create_objects(kube: Kube, addresses: Addresses) -> None:
    """Create the Service with its endpoint, and the permissions of CoreDNS."""
    for each in objects(addresses):
        kube.apply(each)


def objects(addresses: Addresses) -> Iterator[Object]:
    """Yield the objects, named as kubeadm names them."""
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    yield {"apiVersion": f"{_RIGHTS}/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": rules}
    yield {
        "apiVersion": f"{_RIGHTS}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": _RIGHTS, "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": _RIGHTS, "kind": "User", "name": USER}],
    }
    ports = [{"name": name, "protocol": protocol, "port": 53} for name, protocol in _PORTS]
    named = {"name": "kube-dns", "namespace": "kube-system"}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**named, "labels": {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}},
        "spec": {"clusterIP": addresses.dns_service, "ports": ports},
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**named, "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [addresses.control_plane], "conditions": {"ready": True}}],
        "ports": ports,
    }
