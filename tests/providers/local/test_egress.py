"""The proxy of the nodes: its clients, its targets, and copying bytes, with real sockets on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from testbed.providers.local import egress
from testbed.providers.local.egress import Proxy, Refused, may_reach, request

LOOPBACK = frozenset({"127.0.0.1"})
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def test_a_connect_request_has_a_host_and_a_port() -> None:
    assert request(b"CONNECT registry.example:443 HTTP/1.1\r\nHost: x\r\n\r\n") == ("registry.example", 443, b"")


def test_a_plain_http_request_is_sent_in_origin_form_without_proxy_headers() -> None:
    head = b"GET http://registry.example:5000/v2/?n=1 HTTP/1.1\r\nHost: registry.example:5000\r\nProxy-Connection: x\r\n\r\n"

    host, port, onward = request(head)

    assert (host, port) == ("registry.example", 5000)
    assert onward == b"GET /v2/?n=1 HTTP/1.1\r\nHost: registry.example:5000\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"CONNECT x:port HTTP/1.1\r\n\r\n", b"GET file:///etc HTTP/1.1\r\n\r\n"],
)
def test_a_request_that_is_no_proxy_request_is_refused(head: bytes) -> None:
    with pytest.raises(Refused, match="400"):
        request(head)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("192.0.2.7", True),
        ("10.0.0.7", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("0.0.0.0", False),
    ],
)
def test_loopback_and_link_local_addresses_are_refused(address: str, allowed: bool) -> None:
    assert may_reach(address) is allowed


async def _through_proxy(clients: frozenset[str], sent: bytes) -> bytes:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = await asyncio.start_server(Proxy(clients).serve, "127.0.0.1", 0)
    target = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection(*proxy.sockets[0].getsockname())
    writer.write(f"CONNECT 127.0.0.1:{target} HTTP/1.1\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 200"):
        writer.write(sent)
        head += await reader.read()
    writer.close()
    await writer.wait_closed()
    for each in (server, proxy):
        each.close()
        await each.wait_closed()
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))  # the connections that are still closing
    return head


def test_bytes_are_copied_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "may_reach", lambda _: True)

    assert asyncio.run(_through_proxy(LOOPBACK, b"hello")).endswith(b"\r\n\r\nhello")


def test_the_proxy_does_not_reach_services_on_this_host() -> None:
    assert asyncio.run(_through_proxy(LOOPBACK, b"hello")).startswith(b"HTTP/1.1 403")


def test_only_the_nodes_of_the_testbed_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "may_reach", lambda _: True)

    assert asyncio.run(_through_proxy(frozenset({"10.140.0.11"}), b"x")).startswith(b"HTTP/1.1 403")
