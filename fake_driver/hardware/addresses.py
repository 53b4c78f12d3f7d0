"""The network of a fake network device: the same at every start, different on every node, without anybody to ask. Pure.

Each node takes a block of every range, which its name chooses, and the devices of the node follow each other in it. Two of 64 nodes
with 16 addresses each share a block of 10.64.0.0/10 in one of 130 clusters; in an IPv6 range none ever do.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from fake_driver.devices.model import DeviceNetwork

Range = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class AddressPosition:
    """A device's position among all that need an address in its pool."""

    pool: str
    position: int
    among: int


def network(ranges: Iterable[str], interface: str, identity: str, seat: AddressPosition) -> DeviceNetwork:
    """The network of one device. The first octet of the hardware address says that no manufacturer gave it."""
    octets = (0x02, *_hash(identity)[:5])
    ips = tuple(_address(ipaddress.ip_network(each), seat) for each in ranges)
    return DeviceNetwork(interface, ips, ":".join(f"{octet:02x}" for octet in octets))


def blocks(within: Range, among: int) -> int:
    """How many nodes with so many addresses find room in a range; its first and last block, with its reserved addresses, stay free."""
    return within.num_addresses // _block(among) - 2


def _address(within: Range, seat: AddressPosition) -> str:
    chosen = 1 + int.from_bytes(_hash(seat.pool), "big") % blocks(within, seat.among)
    return f"{within[chosen * _block(seat.among) + seat.position]}/{within.prefixlen}"


def _block(among: int) -> int:
    return 1 << max(0, among - 1).bit_length()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
