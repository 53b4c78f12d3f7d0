"""Interfaces and addresses of fake network devices. They depend on names only, so they are the same at every start. Pure.

A hash of the node's name chooses a block of each range, and the devices of the node have consecutive addresses in it. Two nodes may get the
same block: in one of 130 clusters with 64 nodes and 16 addresses each in 10.64.0.0/10, and practically never in an IPv6 range.
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
    """The position of a device among all devices of its pool that need an address."""

    pool: str
    position: int
    among: int


def network(ranges: Iterable[str], interface: str, identity: str, seat: AddressPosition) -> DeviceNetwork:
    """Return the network of one device. Its hardware address is a locally administered one."""
    octets = (0x02, *_hash(identity)[:5])
    ips = tuple(_address(ipaddress.ip_network(each), seat) for each in ranges)
    return DeviceNetwork(interface, ips, ":".join(f"{octet:02x}" for octet in octets))


def blocks(within: Range, among: int) -> int:
    """Return how many nodes with that many addresses fit into a range. Its first and last block have reserved addresses."""
    return within.num_addresses // _block(among) - 2


def _address(within: Range, seat: AddressPosition) -> str:
    chosen = 1 + int.from_bytes(_hash(seat.pool), "big") % blocks(within, seat.among)
    return f"{within[chosen * _block(seat.among) + seat.position]}/{within.prefixlen}"


def _block(among: int) -> int:
    return 1 << max(0, among - 1).bit_length()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
