"""Which ranges of this host are taken, read from its routes."""

import pytest

from testbed.process import Completed
from testbed.providers.local import network


def test_every_10_range_with_a_route_counts_as_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "default via 10.1.0.1 dev eth0\n10.150.0.0/16 via 10.150.0.2 dev dratb150\nlocal 127.0.0.1 dev lo\n192.168.10.0/24 dev x\n"
    monkeypatch.setattr(network, "run", lambda *_, **__: Completed((), 0, said, ""))

    assert network._octets_in_use() == {1, 150}
