"""The address addresses of a local testbed: pure arithmetic over one number, the second octet of its 10.N.0.0/16.

One /16 per testbed lets several stand side by side. Inside it: 10.N.0.0/24 for the machines, 10.N.<node>.0/24 for the pods of a node,
10.N.128.0/24 for Services. Everything here is a plain address; who configures them is network.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

_OCTETS = range(128, 224)
_FALLBACK = range(64, 128)  # of 100.64.0.0/10, for hosts whose VPN takes all of 10.0.0.0/8
MOST_NODES = 64


@dataclass(frozen=True)
class Addresses:
    """All addresses of one testbed."""

    octet: int

    @property
    def first(self) -> int:
        """The first octet follows from the second one."""
        return 10 if self.octet in _OCTETS else 100

    @property
    def machines(self) -> str:
        """The control plane's, the nodes' and the host's addresses."""
        return f"{self.first}.{self.octet}.0.0/24"

    @property
    def everything(self) -> str:
        """The testbed's whole range."""
        return f"{self.first}.{self.octet}.0.0/16"

    @property
    def host(self) -> str:
        """This host, as the testbed sees it."""
        return f"{self.first}.{self.octet}.0.1"

    @property
    def control_plane(self) -> str:
        """The machine with the API server."""
        return f"{self.first}.{self.octet}.0.2"

    @property
    def services(self) -> str:
        """The Services' range."""
        return f"{self.first}.{self.octet}.128.0/24"

    @property
    def kubernetes_service(self) -> str:
        """The `kubernetes` Service, by definition the first address of the range."""
        return f"{self.first}.{self.octet}.128.1"

    @property
    def pods(self) -> str:
        """A range that holds the pods of all nodes."""
        return f"{self.first}.{self.octet}.0.0/17"

    def node(self, index: int) -> str:
        """The node with that number, 1 being the first."""
        return f"{self.first}.{self.octet}.0.{10 + index}"

    def pods_of(self, index: int) -> str:
        """The pods of that node."""
        return f"{self.first}.{self.octet}.{index}.0/24"

    def hardware(self, index: int) -> str:
        """The hardware address of a machine, 0 being the control plane's bridge.

        Fixed, so that after a reboot no neighbour's memory of the old one keeps packets away for half a minute, and so that a bridge
        does not take a new one from each new port.
        """
        return f"02:00:0a:{self.octet:02x}:00:{index:02x}"

    @property
    def host_link(self) -> str:
        """The name of the link on this host; making it is how a testbed claims its range."""
        return f"dratb{self.octet}"


def candidates(name: str, taken: Sequence[ipaddress.IPv4Network]) -> list[Addresses]:
    """The ranges to try for a testbed, the same ones first for the same name, without those that overlap what this host can reach."""
    turn = sum(name.encode()) % len(_OCTETS)
    plans = [Addresses(octet) for octet in (*_OCTETS[turn:], *_OCTETS[:turn], *_FALLBACK)]
    return [
        addresses
        for addresses in plans
        if not any(ipaddress.IPv4Network(addresses.everything).overlaps(other) for other in taken)
    ]
