"""A small forward proxy on this host, through which the container runtimes of one testbed pull images. Each local testbed starts one.

    python -I -S egress.py ADDRESS...   # the nodes' addresses; standard input is the listening socket

A node has no route out of its testbed, and this host's firewall is not changed, so its containerd uses this proxy. The proxy serves nodes
only, not pods. It refuses the loopback addresses of this host, and link-local addresses, where clouds serve credentials. It ignores a
proxy that this host itself may use.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

_TIMEOUT = 30.0


class Refused(Exception):
    """A request is refused; its text is the HTTP status."""


@dataclass(frozen=True)
class Proxy:
    """A proxy for clients with these addresses."""

    clients: frozenset[str]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: read its request, connect, and copy bytes both ways until both sides have closed."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                self._check_client(writer.get_extra_info("peername")[0])
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _TIMEOUT)
                host, port, onward = request(head)
                their_reader, their_writer = await asyncio.wait_for(self._connect(host, port), _TIMEOUT)
            except (Refused, TimeoutError, asyncio.LimitOverrunError) as why:
                writer.write(f"HTTP/1.1 {str(why) or '504 no answer'}\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
            else:
                if onward:
                    their_writer.write(onward)
                else:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await asyncio.gather(_copy(reader, their_writer), _copy(their_reader, writer))
                await _close(their_writer)
        await _close(writer)

    def _check_client(self, address: str) -> None:
        if address not in self.clients:
            raise Refused("403 only the nodes of this testbed may use this proxy")

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as unknown:
            raise Refused(f"502 {host}: {unknown.strerror}") from unknown
        address = str(found[0][4][0])
        if not may_reach(address):
            raise Refused(f"403 {host} is a loopback or link-local address of this host")
        try:
            return await asyncio.open_connection(address, port)
        except OSError as lost:
            raise Refused(f"502 {host}: {lost.strerror}") from lost


def request(head: bytes) -> tuple[str, int, bytes]:
    """Return a request's host and port, and what to send there first: nothing for CONNECT, the request in origin form for plain HTTP."""
    line, _, rest = head.partition(b"\r\n")
    try:
        method, target, version = line.decode("ascii").split(" ")
        where = urlsplit(f"//{target}" if method == "CONNECT" else target)
        port = where.port or 80
    except ValueError as odd:
        raise Refused("400 not a proxy request") from odd
    if not where.hostname or (method != "CONNECT" and where.scheme != "http"):
        raise Refused("400 not a proxy request")
    if method == "CONNECT":
        return where.hostname, port, b""
    path = (where.path or "/") + (f"?{where.query}" if where.query else "")
    kept = [each for each in rest.split(b"\r\n") if each and not each.lower().startswith((b"proxy-", b"connection:"))]
    return (
        where.hostname,
        port,
        b"\r\n".join([f"{method} {path} {version}".encode(), *kept, b"Connection: close", b"", b""]),
    )


def may_reach(address: str) -> bool:
    """Return False for loopback addresses of this host, and for link-local ones, where clouds serve credentials."""
    where = ipaddress.ip_address(address)
    where = getattr(where, "ipv4_mapped", None) or where
    return not (where.is_loopback or where.is_link_local or where.is_multicast or where.is_unspecified)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()


async def _close(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.close()
        await writer.wait_closed()


async def _main(clients: frozenset[str]) -> None:
    listening = socket.socket(fileno=sys.stdin.fileno())
    server = await asyncio.start_server(Proxy(clients).serve, sock=listening)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, server.close)
    with contextlib.suppress(asyncio.CancelledError):
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(frozenset(sys.argv[1:])))
