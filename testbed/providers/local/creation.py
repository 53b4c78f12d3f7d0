"""How a local cluster comes to be: machines, links, certificates, control plane, nodes. Called by the provider alone.

Two cores are few, so nothing waits that could work: nodes boot and containerd starts while etcd and the API server do, images are
imported meanwhile, and kubelets start when the API server answers. Only the controllers wait for the nodes: the one that taints nodes
looks every five seconds, and a node that it saw a moment before it was Ready would keep pods away until it looks again.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from testbed import process
from testbed.kube.client import Kube
from testbed.kube.nodes import wait_until_ready
from testbed.progress import Progress
from testbed.providers.base import ClusterSpec
from testbed.providers.local import cgroups, components, egress, host
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.cluster import LocalCluster, LocalNode
from testbed.providers.local.components import Facts
from testbed.providers.local.credentials import write_credentials
from testbed.providers.local.layout import Layout, Ledger, remember, write_node
from testbed.providers.local.namespaces import Machine, boot
from testbed.providers.local.network import claim_range, connect_control_plane, connect_node
from testbed.providers.local.readiness import api_server_ready
from testbed.providers.process_marks import MARK, mark_of


def create(name: str, spec: ClusterSpec, folder: Path, progress: Progress) -> LocalCluster:
    """Make the cluster; returns when its nodes are Ready and everything was started."""
    with progress.step("control plane: namespaces, addresses, certificates"):
        cluster = start_control_plane(name, spec, folder)
    with ThreadPoolExecutor(max_workers=8) as pool:
        with progress.step(f"{spec.nodes} node{'s' * (spec.nodes > 1)}: namespaces, container runtime, images"):
            _all([pool.submit(_start_node, cluster, node, n) for n, node in enumerate(cluster.node_names, 1)])
        with progress.step("API server ready"):
            wait_for_api_server(cluster)
        with progress.step("scheduler and kubelets started, nodes ready"):
            _all([pool.submit(cluster.launch_kubelet, node) for node in cluster.node_names])
            cluster.start_component("kube-scheduler", components.scheduler(cluster.facts))
            wait_until_ready(Kube(cluster.kubeconfig), cluster.node_names, hint=f"dra-testbed logs --name {name}")
    cluster.start_component("kube-controller-manager", components.controller_manager(cluster.facts))
    return cluster


def start_control_plane(name: str, spec: ClusterSpec, folder: Path) -> LocalCluster:
    """Everything that nodes connect to, with etcd and the API server on their way."""
    layout = Layout(folder)
    layout.make()
    node_names = node_names_of(spec.nodes)
    control_plane = _boot_control_plane(layout)
    plan = claim_range(name, control_plane)
    ledger = Ledger(folder / "cluster.json", plan.octet, node_names, spec.kubernetes)
    ledger.save()
    connect_control_plane(plan, control_plane, spec.nodes)
    ledger.egress_port = _start_egress(layout, plan, [plan.node(n) for n in range(1, spec.nodes + 1)])
    ledger.save()
    facts = facts_of(name, spec, ledger, layout)
    write_credentials(layout.pki, plan, {node: plan.node(n) for n, node in enumerate(node_names, 1)})
    cluster = LocalCluster(name, layout, facts, node_names)
    cluster.start_component("etcd", components.etcd(facts))
    cluster.start_component("kube-apiserver", components.api_server(facts))
    return cluster


def wait_for_api_server(cluster: LocalCluster) -> None:
    """Return when it is ready."""
    api_server_ready(cluster.layout, cluster.facts.plan, cluster.process_of("control-plane", "kube-apiserver"))


def node_names_of(count: int) -> tuple[str, ...]:
    """node-1, node-2, … padded so that they sort."""
    width = len(str(count))
    return tuple(f"node-{n:0{width}}" for n in range(1, count + 1))


def facts_of(name: str, spec: ClusterSpec, ledger: Ledger, layout: Layout) -> Facts:
    """What all command lines are made from."""
    found = host.detect()
    layered = found.overlay and not host.on_overlay(layout.folder)
    return Facts(name, spec, Addresses(ledger.octet), found, layout.pki, layout.etcd, ledger.egress_port, layered)


def _boot_control_plane(layout: Layout) -> Machine:
    script = Path(__file__).with_name("machine.sh")
    machine = boot(layout.folder, layout.control_plane, ["sh", str(script), str(layout.control_plane)], own_root=False)
    remember(layout.control_plane, "init", machine.init)
    return machine


def _start_egress(layout: Layout, plan: Addresses, clients: Sequence[str]) -> int:
    """Start the nodes' way to registries; returns its port, which the kernel chose, so that it is never one that is taken.

    It runs on this host, so it is a process of ours outside the machines; like all of them it carries the mark.
    """
    argv = [sys.executable, "-I", "-S", egress.__file__, *clients]
    with socket.create_server((plan.host, 0)) as listening:
        port = int(listening.getsockname()[1])
        marked = {MARK: mark_of(layout.folder)}
        started = process.start(argv, log=layout.log("egress"), env=marked, stdin=listening.fileno())
    remember(layout.control_plane, "egress", started)
    return port


def _start_node(cluster: LocalCluster, name: str, index: int) -> None:
    write_node(cluster.layout, cluster.facts, name, index)
    cgroups.make(cgroups.cgroup_of(cluster.name, cluster.facts.plan.octet, name))
    machine = cluster.boot_node(name)
    connect_node(cluster.facts.plan, cluster.machine(), machine, index, len(cluster.node_names))
    cluster.start_runtime(name)
    for archive in cluster.facts.spec.images:
        cluster.load_image_on(LocalNode(name, index, machine), archive)


def _all(futures: Sequence[Future[None]]) -> None:
    """Wait for all; when one fails, or somebody interrupts, those that have not begun never do."""
    try:
        for future in futures:
            future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
