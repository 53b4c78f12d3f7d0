"""The address plan of a local testbed: pure arithmetic over one number, the second octet of its 10.N.0.0/16.

One /16 per testbed lets several stand side by side. Inside it: 10.N.0.0/24 for the machines, 10.N.<node>.0/24 for the pods of a node,
10.N.128.0/24 for Services. Everything here is a plain address; who configures them is network.py.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_OCTET, LAST_OCTET = 128, 223
MOST_NODES = 64


@dataclass(frozen=True)
class Addresses:
    """All addresses of one testbed."""

    octet: int

    @property
    def machines(self) -> str:
        """The control plane's, the nodes' and the host's addresses."""
        return f"10.{self.octet}.0.0/24"

    @property
    def everything(self) -> str:
        """The testbed's whole range."""
        return f"10.{self.octet}.0.0/16"

    @property
    def host(self) -> str:
        """This host, as the testbed sees it."""
        return f"10.{self.octet}.0.1"

    @property
    def control_plane(self) -> str:
        """The machine with the API server."""
        return f"10.{self.octet}.0.2"

    @property
    def services(self) -> str:
        """The Services' range."""
        return f"10.{self.octet}.128.0/24"

    @property
    def kubernetes_service(self) -> str:
        """The `kubernetes` Service, by definition the first address of the range."""
        return f"10.{self.octet}.128.1"

    @property
    def pods(self) -> str:
        """A range that holds the pods of all nodes."""
        return f"10.{self.octet}.0.0/17"

    def node(self, index: int) -> str:
        """The node with that number, 1 being the first."""
        return f"10.{self.octet}.0.{10 + index}"

    def pods_of(self, index: int) -> str:
        """The pods of that node."""
        return f"10.{self.octet}.{index}.0/24"

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


def candidates(name: str, taken: set[int]) -> list[Addresses]:
    """The ranges to try for a testbed, the same ones first for the same name, without those that this host uses already."""
    count = LAST_OCTET - FIRST_OCTET + 1
    start = sum(name.encode()) % count
    octets = (FIRST_OCTET + (start + step) % count for step in range(count))
    return [Addresses(octet) for octet in octets if octet not in taken]
