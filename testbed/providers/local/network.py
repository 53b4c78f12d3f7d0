"""Creates the links, addresses and routes of a local cluster with `ip -batch`. Called while the cluster is created or a node boots.

The bridge and one end of every link are in the control plane's network namespace. So all links disappear with its processes, also the
one on the host. That one has the cluster's folder as its alias, by which it can be found and removed at once.

The Services `kubernetes` and `kube-dns` work without netfilter, because their addresses belong to the control plane, where the API server
and CoreDNS listen on their ports, and nodes have a route to it. For other Services kube-proxy writes rules in the nodes' namespaces.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import CommandFailed, TestbedError
from testbed.process import Completed, pid_namespace, run
from testbed.providers.local.addresses import Addresses, candidates
from testbed.providers.local.namespaces import Machine
from testbed.providers.process_marks import mark_of

BRIDGE = "testbed0"
_CLOUD_METADATA = ("169.254.169.254", "169.254.170.2", "169.254.170.23")


def claim_range(name: str, control_plane: Machine) -> Addresses:
    """Find a free /16 and claim it by creating the link between this host and the control plane, which only one process can do."""
    for addresses in candidates(name, _routes()):
        made = run(
            [
                "ip",
                "link",
                "add",
                addresses.host_link,
                "type",
                "veth",
                "peer",
                "name",
                "host",
                "netns",
                str(control_plane.checked_pid()),
            ],
            check=False,
        )
        if made.ok:
            run(["ip", "link", "set", addresses.host_link, "alias", mark_of(control_plane.cluster)])
            return addresses
        if "File exists" not in made.stderr:
            raise CommandFailed(made.argv, f"exit {made.code}", made.stderr, hint="dra-testbed doctor")
    raise TestbedError(
        "no free address range for a testbed on this host: routes exist for all of 10.128.0.0/9 and 100.64.0.0/10",
        hint="dra-testbed sweep, remove a testbed, or disconnect a VPN that uses both ranges",
    )


def connect_control_plane(addresses: Addresses, control_plane: Machine, nodes: int) -> None:
    """Create the bridge, the control plane's addresses, its routes to the pods, and this host's route to the testbed."""
    _batch(
        control_plane,
        [
            "link set lo up",
            f"addr add {addresses.kubernetes_service}/32 dev lo",
            f"addr add {addresses.dns_service}/32 dev lo",
            f"link add {BRIDGE} address {addresses.hardware(0)} type bridge",
            f"addr add {addresses.control_plane}/24 dev {BRIDGE}",
            f"addr add {addresses.resolver}/24 dev {BRIDGE}",
            f"link set {BRIDGE} up",
            f"link set host master {BRIDGE} up",
            *(f"route add {addresses.pods_of(n)} via {addresses.node(n)}" for n in range(1, nodes + 1)),
        ],
    )
    control_plane.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    _batch(
        None,
        [
            f"addr add {addresses.host}/24 dev {addresses.host_link}",
            f"link set {addresses.host_link} up",
            f"route add {addresses.everything} via {addresses.control_plane} dev {addresses.host_link}",
        ],
    )


def connect_node(addresses: Addresses, control_plane: Machine, node: Machine, index: int, nodes: int) -> None:
    """Create a node's link, its address, and its routes to the Services and to the pods of other nodes."""
    link = f"node{index}"
    # The old end of the link of a node that was just killed may still exist.
    _batch(control_plane, [f"link del {link}"], check=False)
    run(["ip", "link", "add", link, "netns", str(control_plane.checked_pid()), "type", "veth",
         "peer", "name", "eth0", "netns", str(node.checked_pid())])  # fmt: skip
    _batch(control_plane, [f"link set {link} master {BRIDGE} up"])
    others = (n for n in range(1, nodes + 1) if n != index)
    _batch(
        node,
        [
            "link set lo up",
            f"link set eth0 address {addresses.hardware(index)}",
            f"addr add {addresses.node(index)}/24 dev eth0",
            "link set eth0 up",
            f"route add {addresses.services} via {addresses.control_plane}",
            *(f"route add {addresses.pods_of(n)} via {addresses.node(n)}" for n in others),
            f"route add default via {addresses.host}",
            # Drivers that look for a cloud must not wait until their requests time out. There is no route to fd00:ec2::254 anyway.
            *(f"route add unreachable {address}" for address in _CLOUD_METADATA),
        ],
    )
    # A node answers a pod that connects to a metadata address by ICMP, and would answer only once per second.
    settings = "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/icmp_ratelimit"
    node.run("sh", "-c", settings)


def links_of_testbeds() -> dict[str, Path]:
    """Return the links on this host of the testbeds of this PID namespace, with their clusters' folders, by the links' aliases."""
    here = f"{pid_namespace()} "
    found = {path.name: _alias(path) for path in Path("/sys/class/net").glob("dratb*")}
    return {name: Path(alias.removeprefix(here)) for name, alias in found.items() if alias.startswith(here)}


def remove_links_of(cluster: Path) -> None:
    """Remove a cluster's link at once. It would disappear with its namespace too, but the kernel may keep that for a minute."""
    for name, owner in links_of_testbeds().items():
        if owner == cluster:
            run(["ip", "link", "delete", name], check=False)


def _alias(link: Path) -> str:
    try:
        return (link / "ifalias").read_text().strip()
    except OSError:
        return ""


def _routes() -> list[ipaddress.IPv4Network]:
    """Return every network that this host has a route to, except for default routes. A testbed must not shadow one of them."""
    output = run(["ip", "-4", "route", "show", "table", "all"], check=False).stdout
    found = re.findall(r"^(?:\w+ )?(\d+\.\d+\.\d+\.\d+(?:/\d+)?) ", output, flags=re.MULTILINE)
    return [ipaddress.IPv4Network(each, strict=False) for each in found]


def _batch(machine: Machine | None, commands: Sequence[str], *, check: bool = True) -> Completed:
    text = "\n".join(commands) + "\n"
    entering: contextlib.AbstractContextManager[list[str]] = contextlib.nullcontext([])
    if machine:
        entering = machine.entering(network_only=True)
    with entering as enter:
        return run([*enter, "ip", "-batch", "-"], input=text, check=check, hint="dra-testbed doctor")
