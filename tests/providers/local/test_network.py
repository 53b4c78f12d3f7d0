"""The ranges that the host uses, from its routes."""

import pytest

from testbed.process import Completed
from testbed.providers.local import network


def test_every_network_that_the_host_has_a_route_to_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "default via 10.1.0.1 dev eth0\n10.150.0.0/16 via 10.150.0.2 dev dratb150\n10.0.0.0/8 dev tun0 scope link\n"
        "local 127.0.0.1 dev lo table local\n192.0.2.7 dev x\n"
    )
    monkeypatch.setattr(network, "run", lambda *_, **__: Completed((), 0, said, ""))

    assert [str(each) for each in network._routes()] == ["10.150.0.0/16", "10.0.0.0/8", "127.0.0.1/32", "192.0.2.7/32"]
