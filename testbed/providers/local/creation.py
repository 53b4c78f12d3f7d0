"""Creates a local cluster: machines, links, certificates, control plane, nodes. Called by the provider and the benchmarks.

To be fast on two cores, work overlaps: while etcd and the API server start, the nodes boot, start containerd and import images. Kubelets
start as soon as the API server is ready. The controller manager starts last: its node controller checks every five seconds, and a node
that it saw just before the node became Ready would keep its taint until the next check.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from testbed import process
from testbed.kube.client import Kube
from testbed.kube.nodes import wait_until_ready
from testbed.progress import Progress
from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.container_spec import base_spec
from testbed.providers.local import cgroups, components, egress, host
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.cluster import LocalCluster, LocalNode
from testbed.providers.local.components import ClusterSettings
from testbed.providers.local.credentials import write_credentials
from testbed.providers.local.layout import ClusterRecord, Layout, save_process_id, write_node
from testbed.providers.local.namespaces import Machine, boot
from testbed.providers.local.network import claim_range, connect_control_plane, connect_node
from testbed.providers.local.readiness import api_server_ready
from testbed.providers.local.services import dns, netfilter, nft
from testbed.providers.process_marks import MARK, mark_of


def create(name: str, spec: ClusterSpec, artifacts: Artifacts, folder: Path, progress: Progress) -> LocalCluster:
    """Create the cluster; return when its nodes are Ready and all components have been started."""
    artifacts, has_rules = _with_nft(artifacts, progress)
    with progress.step("control plane: namespaces, addresses, certificates"):
        cluster = start_control_plane(name, spec, artifacts, folder)
        spec_of_containers = process.run([artifacts.programs["ctr"], "oci", "spec"]).stdout
        cluster.layout.container_spec.write_text(base_spec(spec_of_containers))
    with ThreadPoolExecutor(max_workers=8) as pool:
        with progress.step(f"{spec.nodes} node{'s' * (spec.nodes > 1)}: namespaces, container runtime, images"):
            _all([pool.submit(_start_node, cluster, node, n) for n, node in enumerate(cluster.node_names, 1)])
        with progress.step("API server ready"):
            wait_for_api_server(cluster)
        with progress.step("scheduler and kubelets started, nodes ready"):
            _all([pool.submit(cluster.launch_kubelet, node) for node in cluster.node_names])
            cluster.start_component("kube-scheduler", components.scheduler(cluster.settings))
            wait_until_ready(Kube(cluster.kubeconfig), cluster.node_names, hint=f"dra-testbed logs --name {name}")
    cluster.start_component("kube-controller-manager", components.controller_manager(cluster.settings))
    _start_services(cluster, with_proxy=has_rules)
    return cluster


def start_control_plane(name: str, spec: ClusterSpec, artifacts: Artifacts, folder: Path) -> LocalCluster:
    """Start what the nodes connect to. Return while etcd and the API server are still starting."""
    layout = Layout(folder)
    layout.make()
    node_names = node_names_of(spec.nodes)
    control_plane = _boot_control_plane(layout)
    addresses = claim_range(name, control_plane)
    record = ClusterRecord(folder / "cluster.json", addresses.octet, node_names, spec.kubernetes)
    record.save()
    connect_control_plane(addresses, control_plane, spec.nodes)
    record.egress_port = _start_egress(layout, addresses, [addresses.node(n) for n in range(1, spec.nodes + 1)])
    record.save()
    settings = settings_of(name, spec, artifacts, record, layout)
    write_credentials(layout.pki, addresses, {node: addresses.node(n) for n, node in enumerate(node_names, 1)})
    cluster = LocalCluster(name, layout, settings, node_names)
    cluster.start_component("etcd", components.etcd(settings))
    cluster.start_component("kube-apiserver", components.api_server(settings))
    return cluster


def wait_for_api_server(cluster: LocalCluster) -> None:
    """Wait until the API server is ready."""
    api_server_ready(cluster.layout, cluster.settings.addresses, cluster.process_of("control-plane", "kube-apiserver"))


def node_names_of(count: int) -> tuple[str, ...]:
    """Return node-1, node-2, … with zeros in front, so that the names sort."""
    width = len(str(count))
    return tuple(f"node-{n:0{width}}" for n in range(1, count + 1))


def settings_of(
    name: str, spec: ClusterSpec, artifacts: Artifacts, record: ClusterRecord, layout: Layout
) -> ClusterSettings:
    """Return what all command lines and configuration files are made from."""
    found = host.detect()
    use_overlay = found.overlay and not host.on_overlay(layout.folder)
    addresses, port = Addresses(record.octet), record.egress_port
    return ClusterSettings(name, spec, artifacts, addresses, found, layout.pki, layout.etcd, port, use_overlay)


def _boot_control_plane(layout: Layout) -> Machine:
    script = Path(__file__).with_name("machine.sh")
    machine = boot(layout.folder, layout.control_plane, ["sh", str(script), str(layout.control_plane)], own_root=False)
    save_process_id(layout.control_plane, "init", machine.init)
    return machine


def _start_egress(layout: Layout, addresses: Addresses, clients: Sequence[str]) -> int:
    """Start the proxy through which nodes pull images; return its port, which the kernel chose.

    It runs on this host, outside the machines. Like all our processes it carries the mark.
    """
    argv = [sys.executable, "-I", "-S", egress.__file__, *clients]
    with socket.create_server((addresses.host, 0)) as listening:
        port = int(listening.getsockname()[1])
        marked = {MARK: mark_of(layout.folder)}
        started = process.start(argv, log=layout.log("egress"), env=marked, stdin=listening.fileno())
    save_process_id(layout.control_plane, "egress", started)
    return port


def _start_node(cluster: LocalCluster, name: str, index: int) -> None:
    write_node(cluster.layout, cluster.settings, name, index)
    cgroups.make(cgroups.cgroup_of(cluster.name, cluster.settings.addresses.octet, name))
    machine = cluster.boot_node(name)
    connect_node(cluster.settings.addresses, cluster.machine(), machine, index, len(cluster.node_names))
    cluster.start_runtime(name)
    for archive in cluster.settings.artifacts.images:
        cluster.load_image_on(LocalNode(name, index, machine), archive)


def _with_nft(artifacts: Artifacts, progress: Progress) -> tuple[Artifacts, bool]:
    """Return the programs with nft, if nodes do not see that of this host, and whether kube-proxy can work. Report why it cannot."""
    found = nft.find(progress)
    problems = netfilter.lacking(host.detect().kernel, found)
    for problem in problems:
        progress.say(f"note: {problem.what}; {problem.cure}")
    if found and nft.is_unpacked(found):
        artifacts = replace(artifacts, programs={**artifacts.programs, "nft": found})
    return artifacts, not problems


def _start_services(cluster: LocalCluster, *, with_proxy: bool) -> None:
    """Start CoreDNS and kube-proxy without waiting for them. No node needs them to be Ready, so they start beside the driver."""
    settings = cluster.settings
    cluster.layout.corefile.write_text(dns.corefile(settings.addresses, settings.pki))
    dns.create_objects(Kube(cluster.kubeconfig), settings.addresses)
    cluster.start_component("coredns", dns.command(settings, cluster.layout.corefile))
    for node in cluster.node_names if with_proxy else ():
        cluster.launch_proxy(node)


def _all(futures: Sequence[Future[None]]) -> None:
    """Wait for all. If one fails, or the user interrupts, cancel those that have not started."""
    try:
        for future in futures:
            future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
