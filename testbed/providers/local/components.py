"""The command lines and configuration files of every component of a local cluster, as pure functions of ClusterSettings.

`layout.py` writes the files, `creation.py` and `cluster.py` start the components.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.host import Host

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CONTAINER_SPEC = "/etc/containerd/containers.json"
NODE_FILES = "/etc/dra-testbed"  # inside a node: the files of the kubelet
# runc mounts an overlay over its own folder and executes itself from there. The overlay would not contain a bind-mounted file, so the
# whole folder is bind-mounted.
_RUNC_FOLDER = "/usr/local/libexec/dra-testbed/runc"


@dataclass(frozen=True)
class ClusterSettings:
    """Everything that the command lines and configuration files depend on."""

    name: str
    spec: ClusterSpec
    artifacts: Artifacts
    addresses: Addresses
    host: Host
    pki: Path
    etcd_data: Path
    egress_port: int = 0
    use_overlay: bool = True  # False if the testbed's folder cannot hold the upper layer of an overlay


def gates(settings: ClusterSettings, *, without: frozenset[str] = frozenset()) -> list[str]:
    """Return the flag with the user's feature gates, or an empty list."""
    wanted = {gate: on for gate, on in settings.spec.feature_gates.items() if gate not in without}
    chosen = ",".join(f"{gate}={str(on).lower()}" for gate, on in sorted(wanted.items()))
    return [f"--feature-gates={chosen}"] if chosen else []


def etcd(settings: ClusterSettings) -> list[str]:
    """Return etcd's command line. Nothing is synced to disk, because the data does not outlive the testbed."""
    return [
        str(settings.artifacts.programs["etcd"]), f"--data-dir={settings.etcd_data}", "--unsafe-no-fsync",
        "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--initial-cluster=default=http://127.0.0.1:2380", "--log-level=warn",
    ]  # fmt: skip


def api_server(settings: ClusterSettings) -> list[str]:
    """Return the API server's command line.

    It serves on port 443, the port of the `kubernetes` Service, whose address belongs to this machine: so the Service needs no NAT.
    """
    pki, addresses = settings.pki, settings.addresses
    # Webhooks and extension API servers are called at a pod of their Service, because no kube-proxy runs here.
    routing = "--enable-aggregator-routing=true"
    served = ",".join(f"{group}={value}" for group, value in sorted(settings.spec.runtime_config.items()))
    return [
        str(settings.artifacts.programs["kube-apiserver"]), "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=443", f"--advertise-address={addresses.control_plane}", f"--service-cluster-ip-range={addresses.services}",
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-certificate-authority={pki}/ca.crt", f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key", "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki}/service-account.crt", f"--service-account-signing-key-file={pki}/service-account.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
        "--anonymous-auth=true", "--endpoint-reconciler-type=lease", routing,
        *([f"--runtime-config={served}"] if served else []), *gates(settings),
    ]  # fmt: skip


def controller_manager(settings: ClusterSettings) -> list[str]:
    """Return the command line of the controller manager. Each controller has its own service account, as in a real cluster.

    Creating these accounts and their tokens takes about 80 requests before the first controller starts. At the default of 20 per second
    `up` would have to wait for them, so the limit of the client is raised.
    """
    pki = settings.pki
    return [
        str(settings.artifacts.programs["kube-controller-manager"]), f"--kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authentication-kubeconfig={pki}/controller-manager.kubeconfig",
        f"--authorization-kubeconfig={pki}/controller-manager.kubeconfig",
        "--leader-elect=false", "--use-service-account-credentials=true", "--bind-address=127.0.0.1",
        "--kube-api-qps=300", "--kube-api-burst=600",
        f"--service-account-private-key-file={pki}/service-account.key", f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key", *gates(settings),
    ]  # fmt: skip


def scheduler(settings: ClusterSettings) -> list[str]:
    """Return the scheduler's command line."""
    config = f"{settings.pki}/scheduler.kubeconfig"
    return [
        str(settings.artifacts.programs["kube-scheduler"]), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}", "--leader-elect=false", "--bind-address=127.0.0.1",
        *gates(settings, without=settings.spec.gates_unknown_to_scheduler),
    ]  # fmt: skip


CONTROL_PLANE = {"etcd": etcd, "kube-scheduler": scheduler, "kube-controller-manager": controller_manager}


def containerd() -> list[str]:
    """Return containerd's command line inside a node, where all paths are the standard ones."""
    return ["/usr/local/bin/containerd", "--config", "/etc/containerd/config.toml", "--log-level", "info"]


def containerd_environment(settings: ClusterSettings) -> dict[str, str]:
    """Return containerd's environment: it pulls images through the proxy on this host, because a node has no other route."""
    proxy = f"http://{settings.addresses.host}:{settings.egress_port}"
    return {
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": f"{settings.addresses.everything},127.0.0.1,localhost",
    }


def kubelet(settings: ClusterSettings, node: str, index: int) -> list[str]:
    """Return the kubelet's command line. Its client certificate is limited by Node authorization and NodeRestriction."""
    return [
        "/usr/local/bin/kubelet", f"--config={NODE_FILES}/kubelet.json", f"--kubeconfig={NODE_FILES}/kubelet.kubeconfig",
        f"--hostname-override={node}", f"--node-ip={settings.addresses.node(index)}", "--v=2",
    ]  # fmt: skip


def kubelet_configuration(settings: ClusterSettings, cgroup: str) -> str:
    """Return the KubeletConfiguration as JSON. Eviction and image garbage collection are nearly off: the disk belongs to the host."""
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
            "clusterDNS": [settings.addresses.dns_service],
            "clusterDomain": "cluster.local",
            # A kubelet retries a claim that could not be prepared only once per period, which is a minute by default. The first attempt
            # can fail on a correct cluster: the kubelet may read a claim before the Node authorizer has seen the pod.
            "syncFrequency": "10s",
            "featureGates": dict(settings.spec.feature_gates),
            **({} if settings.host.may_lower_oom_score else {"oomScoreAdj": 0}),
        },
        indent=1,
    )


def snapshotter(settings: ClusterSettings) -> str:
    """Return containerd's snapshotter: native where the testbed's folder cannot hold an overlay."""
    return "overlayfs" if settings.use_overlay else "native"


def containerd_configuration(settings: ClusterSettings) -> str:
    """Return the configuration of containerd 2 (configuration version 3): CDI and NRI on, cgroupfs, our sandbox image.

    containerd would replace the masks of the base spec by those of the kubelet; `disable_proc_mount` keeps them. So `procMount: Unmasked`
    has no effect.
    """
    runc = f"{_RUNC_FOLDER}/{settings.artifacts.programs['runc'].name}"
    restrict = str(not settings.host.may_lower_oom_score).lower()
    volatile = '["volatile"]' if settings.host.volatile_overlays else "[]"
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter(settings)}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{settings.artifacts.sandbox_image}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  restrict_oom_score_adj = {restrict}
  disable_proc_mount = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{CONTAINER_SPEC}"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{runc}"
[plugins."io.containerd.snapshotter.v1.overlayfs"]
  mount_options = {volatile}
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "/var/run/nri/nri.sock"
"""


def pod_network(settings: ClusterSettings, index: int) -> str:
    """Return the CNI configuration: point-to-point links and host-local addresses, without a bridge on the node and without netfilter."""
    ptp = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": settings.addresses.pods_of(index)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "testbed", "plugins": [ptp]}, indent=1)


def node_programs(programs: Mapping[str, Path]) -> str:
    """Return the upstream programs that are bind-mounted into a node, as lines of `source target`."""
    tools = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-proxy")
    plugins = ("cni-ptp", "cni-loopback", "cni-host-local")
    lines = [f"{programs[name]} /usr/local/bin/{name}" for name in tools]
    lines += [f"{programs['runc'].parent} {_RUNC_FOLDER}"]
    if "nft" in programs:
        lines += [f"{programs['nft'].parent} {programs['nft'].parent}", f"{programs['nft']} /usr/local/sbin/nft"]
    lines += [f"{programs[name]} /opt/cni/bin/{name.removeprefix('cni-')}" for name in plugins]
    return "\n".join(lines) + "\n"
