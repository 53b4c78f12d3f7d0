"""Writes the credentials of a local cluster: the folder `pki` with certificates and keys, and a kubeconfig for each component."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from testbed.providers.local.addresses import Addresses
from testbed.providers.local.certificates import Authority, Pair, signing_key, write_secret

_CLIENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("dra-testbed-admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
    "kube-proxy": ("system:kube-proxy", ()),
    "coredns": ("system:coredns", ()),
}


def write_credentials(folder: Path, addresses: Addresses, nodes: Mapping[str, str]) -> None:
    """Write all certificates, keys and kubeconfigs into `folder`. `nodes` maps a node's name to its address."""
    folder.mkdir(mode=0o700, exist_ok=True)
    authority = Authority("dra-testbed")
    authority.pair.write(folder, "ca")
    service_names = (
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    )
    served_on = (addresses.control_plane, addresses.kubernetes_service, "127.0.0.1")
    authority.issue("kube-apiserver", names=(*service_names, *served_on)).write(folder, "apiserver")
    authority.issue("kube-apiserver-kubelet-client", groups=("system:masters",)).write(
        folder, "apiserver-kubelet-client"
    )
    signing_key().write(folder, "service-account")
    for name, (user, groups) in _CLIENTS.items():
        _write_kubeconfig(folder / f"{name}.kubeconfig", authority, addresses, authority.issue(user, groups=groups))
    for node, address in nodes.items():
        authority.issue(f"system:node:{node}", groups=("system:nodes",), names=(node, address)).write(
            folder, f"kubelet-{node}"
        )
        client = authority.issue(f"system:node:{node}", groups=("system:nodes",))
        _write_kubeconfig(folder / f"kubelet-{node}.kubeconfig", authority, addresses, client)


def _write_kubeconfig(path: Path, authority: Authority, addresses: Addresses, user: Pair) -> None:
    def encoded(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    cluster = {
        "server": f"https://{addresses.control_plane}",
        "certificate-authority-data": encoded(authority.pair.certificate),
    }
    credentials = {"client-certificate-data": encoded(user.certificate), "client-key-data": encoded(user.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dra-testbed", "cluster": cluster}],
        "users": [{"name": "dra-testbed", "user": credentials}],
        "contexts": [{"name": "dra-testbed", "context": {"cluster": "dra-testbed", "user": "dra-testbed"}}],
        "current-context": "dra-testbed",
    }
    write_secret(path, json.dumps(config, indent=1).encode())
