"""The address plan of a local cluster, as pure functions of one number: the second octet of its 10.N.0.0/16. `network.py` uses it.

Each testbed has its own /16, so that several can run on one host: 10.N.0.0/24 for the machines, 10.N.<node>.0/24 for the pods of a node,
and 10.N.128.0/24 for Services.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

_OCTETS = range(128, 224)
_FALLBACK = range(64, 128)  # of 100.64.0.0/10, for hosts whose VPN uses all of 10.0.0.0/8
MOST_NODES = 64


@dataclass(frozen=True)
class Addresses:
    """All addresses of one testbed."""

    octet: int

    @property
    def first(self) -> int:
        """The first octet, which follows from the second one."""
        return 10 if self.octet in _OCTETS else 100

    @property
    def machines(self) -> str:
        """The range of the control plane, the nodes and the host."""
        return f"{self.first}.{self.octet}.0.0/24"

    @property
    def everything(self) -> str:
        """The whole range of the testbed."""
        return f"{self.first}.{self.octet}.0.0/16"

    @property
    def host(self) -> str:
        """The host's address in the testbed."""
        return f"{self.first}.{self.octet}.0.1"

    @property
    def control_plane(self) -> str:
        """The address of the machine with the API server."""
        return f"{self.first}.{self.octet}.0.2"

    @property
    def resolver(self) -> str:
        """The address of the nodes' resolver, on the control plane."""
        return f"{self.first}.{self.octet}.0.3"

    @property
    def services(self) -> str:
        """The range of Services."""
        return f"{self.first}.{self.octet}.128.0/24"

    @property
    def kubernetes_service(self) -> str:
        """The address of the `kubernetes` Service: always the first one of the range."""
        return f"{self.first}.{self.octet}.128.1"

    @property
    def dns_service(self) -> str:
        """The address of the `kube-dns` Service."""
        return f"{self.first}.{self.octet}.128.10"

    @property
    def pods(self) -> str:
        """A range that contains the pods of all nodes."""
        return f"{self.first}.{self.octet}.0.0/17"

    def node(self, index: int) -> str:
        """Return the address of a node; the first one has number 1."""
        return f"{self.first}.{self.octet}.0.{10 + index}"

    def pods_of(self, index: int) -> str:
        """Return the range of a node's pods."""
        return f"{self.first}.{self.octet}.{index}.0/24"

    def hardware(self, index: int) -> str:
        """Return the MAC address of a machine; 0 is the control plane's bridge.

        It is fixed, so that ARP caches stay valid when a node reboots, and so that the bridge does not adopt the address of a new port.
        """
        return f"02:00:0a:{self.octet:02x}:00:{index:02x}"

    @property
    def host_link(self) -> str:
        """The name of the link on this host. A testbed claims its range by creating the link."""
        return f"dratb{self.octet}"


def candidates(name: str, taken: Sequence[ipaddress.IPv4Network]) -> list[Addresses]:
    """Return the ranges to try for a testbed, without those in use by the host. The same name tries the same ranges first."""
    start = sum(name.encode()) % len(_OCTETS)
    plans = [Addresses(octet) for octet in (*_OCTETS[start:], *_OCTETS[:start], *_FALLBACK)]
    return [
        addresses
        for addresses in plans
        if not any(ipaddress.IPv4Network(addresses.everything).overlaps(other) for other in taken)
    ]
