"""The command line and the configuration of kube-proxy, which runs on every node. `layout.py` writes them, `cluster.py` starts it."""

from __future__ import annotations

import json

from testbed.providers.local.components import NODE_FILES, ClusterSettings

FILE, KUBECONFIG = "kube-proxy.json", "kube-proxy.kubeconfig"  # in NODE_FILES


def command() -> list[str]:
    """Return the command line of kube-proxy inside a node."""
    return ["/usr/local/bin/kube-proxy", f"--config={NODE_FILES}/{FILE}", "--v=2"]


def configuration(settings: ClusterSettings, node: str) -> str:
    """Return the KubeProxyConfiguration as JSON. It leaves conntrack's limits alone, because they are those of this host.

    kube-proxy refuses feature gates that it does not know, so it does not get those of the user.
    """
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": f"{NODE_FILES}/{KUBECONFIG}"},
            "hostnameOverride": node,
            "clusterCIDR": settings.addresses.pods,
            "detectLocalMode": "ClusterCIDR",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            **({} if settings.host.may_lower_oom_score else {"oomScoreAdj": 0}),
        },
        indent=1,
    )
