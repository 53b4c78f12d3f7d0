"""The command lines and configuration files of every component of a local testbed: pure functions from the facts to text.

`layout.py` says where things lie; `cluster.py` starts what is described here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.providers.base import ClusterSpec
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.host import Host

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
NODE_FILES = "/etc/dra-testbed"  # inside a node: what the kubelet reads
# runc lays an overlay over the folder that it lies in, and runs itself from there. An overlay does not see what is mounted on a
# single file, so the whole folder is mounted.
_RUNC_FOLDER = "/usr/local/libexec/dra-testbed/runc"


@dataclass(frozen=True)
class Facts:
    """All that the command lines depend on."""

    name: str
    spec: ClusterSpec
    plan: Addresses
    host: Host
    pki: Path
    etcd_data: Path
    egress_port: int = 0
    layered: bool = True  # whether the testbed's folder can hold the upper layer of an overlay


def gates(facts: Facts, *, without: frozenset[str] = frozenset()) -> list[str]:
    """The flag with the user's feature gates, or nothing."""
    wanted = {gate: on for gate, on in facts.spec.feature_gates.items() if gate not in without}
    chosen = ",".join(f"{gate}={str(on).lower()}" for gate, on in sorted(wanted.items()))
    return [f"--feature-gates={chosen}"] if chosen else []


def etcd(facts: Facts) -> list[str]:
    """Throw-away data: nothing is synced to disk."""
    return [
        str(facts.spec.programs["etcd"]), f"--data-dir={facts.etcd_data}", "--unsafe-no-fsync",
        "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--initial-cluster=default=http://127.0.0.1:2380", "--log-level=warn",
    ]  # fmt: skip


def api_server(facts: Facts) -> list[str]:
    """Secure port 443, so that the `kubernetes` Service's address, which is one of this machine's own, needs no translation."""
    pki, plan = facts.pki, facts.plan
    served = ",".join(f"{group}={value}" for group, value in sorted(facts.spec.runtime_config.items()))
    return [
        str(facts.spec.programs["kube-apiserver"]), "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=443", f"--advertise-address={plan.control_plane}", f"--service-cluster-ip-range={plan.services}",
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-certificate-authority={pki}/ca.crt", f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key", "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki}/service-account.crt", f"--service-account-signing-key-file={pki}/service-account.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
        "--anonymous-auth=true", "--endpoint-reconciler-type=lease", *([f"--runtime-config={served}"] if served else []), *gates(facts),
    ]  # fmt: skip


def controller_manager(facts: Facts) -> list[str]:
    """Every controller, each with an account of its own, as a real cluster has it.

    Making those accounts and their tokens takes about 80 requests before the first controller starts; at the stock 20 a second that is
    what `up` would wait for, so the client may ask faster.
    """
    pki = facts.pki
    return [
        str(facts.spec.programs["kube-controller-manager"]), f"--kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authentication-kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authorization-kubeconfig={pki}/controller-manager.kubeconfig",
        "--leader-elect=false", "--use-service-account-credentials=true", "--bind-address=127.0.0.1",
        "--kube-api-qps=300", "--kube-api-burst=600",
        f"--service-account-private-key-file={pki}/service-account.key", f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key", *gates(facts),
    ]  # fmt: skip


def scheduler(facts: Facts) -> list[str]:
    """The stock scheduler."""
    config = f"{facts.pki}/scheduler.kubeconfig"
    return [
        str(facts.spec.programs["kube-scheduler"]), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}", "--leader-elect=false", "--bind-address=127.0.0.1",
        *gates(facts, without=facts.spec.gates_unknown_to_scheduler),
    ]  # fmt: skip


def containerd() -> list[str]:
    """Inside a node, where every path is the standard one."""
    return ["/usr/local/bin/containerd", "--config", "/etc/containerd/config.toml", "--log-level", "info"]


def containerd_environment(facts: Facts) -> dict[str, str]:
    """Images are pulled through the proxy on this host: the way out of the testbed."""
    proxy = f"http://{facts.plan.host}:{facts.egress_port}"
    return {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": f"{facts.plan.everything},127.0.0.1,localhost"}


def kubelet(facts: Facts, node: str, index: int) -> list[str]:
    """Its identity is a certificate of its own, limited by Node authorisation and NodeRestriction."""
    return [
        "/usr/local/bin/kubelet", f"--config={NODE_FILES}/kubelet.json", f"--kubeconfig={NODE_FILES}/kubelet.kubeconfig",
        f"--hostname-override={node}", f"--node-ip={facts.plan.node(index)}", "--v=2",
    ]  # fmt: skip


def kubelet_configuration(facts: Facts, cgroup: str) -> str:
    """KubeletConfiguration as JSON. Eviction and image collection stay out of the way: the disk is the host's."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{NODE_FILES}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{NODE_FILES}/kubelet.crt",
            "tlsPrivateKeyFile": f"{NODE_FILES}/kubelet.key",
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "failSwapOn": False,
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "evictionHard": {
                "memory.available": "50Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "resolvConf": "/etc/resolv.conf",
            # The only retry of a claim that could not be prepared comes with this period, a minute by default. And the first try does fail
            # now and then through nobody's fault: the kubelet may ask for a claim before the authorizer has heard of its pod.
            "syncFrequency": "10s",
            "featureGates": dict(facts.spec.feature_gates),
            **({} if facts.host.may_lower_oom_score else {"oomScoreAdj": 0}),
        },
        indent=1,
    )


def snapshotter(facts: Facts) -> str:
    """How containerd keeps images: in layers, or as copies where an overlay cannot lie."""
    return "overlayfs" if facts.layered else "native"


def containerd_configuration(facts: Facts) -> str:
    """For containerd 2 (configuration version 3): CDI and NRI on, cgroupfs, our sandbox image."""
    runc = f"{_RUNC_FOLDER}/{facts.spec.programs['runc'].name}"
    restrict = str(not facts.host.may_lower_oom_score).lower()
    volatile = '["volatile"]' if facts.host.volatile_overlays else "[]"
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter(facts)}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{facts.spec.sandbox_image}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  restrict_oom_score_adj = {restrict}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{runc}"
[plugins."io.containerd.snapshotter.v1.overlayfs"]
  mount_options = {volatile}
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "/var/run/nri/nri.sock"
"""


def pod_network(facts: Facts, index: int) -> str:
    """Point-to-point links and host-local addresses: no bridge on the node, no netfilter."""
    ptp = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": facts.plan.pods_of(index)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "testbed", "plugins": [ptp]}, indent=1)


def node_programs(programs: Mapping[str, Path]) -> str:
    """Which upstream programs a node sees, and where: lines of `source target`."""
    tools = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet")
    plugins = ("cni-ptp", "cni-loopback", "cni-host-local")
    lines = [f"{programs[name]} /usr/local/bin/{name}" for name in tools]
    lines += [f"{programs['runc'].parent} {_RUNC_FOLDER}"]
    lines += [f"{programs[name]} /opt/cni/bin/{name.removeprefix('cni-')}" for name in plugins]
    return "\n".join(lines) + "\n"
