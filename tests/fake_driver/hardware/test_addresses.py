import ipaddress
import re

from hypothesis import given
from hypothesis import strategies as st

from fake_driver.hardware.addresses import AddressPosition, blocks, network

RANGES = ("10.64.0.0/10", "fd64::/48")
nodes = st.from_regex(r"[a-z]{1,8}-[0-9]{1,3}", fullmatch=True)


@given(nodes, st.integers(1, 300).flatmap(lambda among: st.tuples(st.integers(0, among - 1), st.just(among))))
def test_addresses_are_in_their_ranges_and_the_same_each_time(node: str, seat: tuple[int, int]) -> None:
    found = network(RANGES, "net0", f"{node}/nic-0", AddressPosition(node, *seat))
    assert found == network(RANGES, "net0", f"{node}/nic-0", AddressPosition(node, *seat))
    for text, within in zip(found.ips, RANGES, strict=True):
        address = ipaddress.ip_interface(text)
        assert address.network == ipaddress.ip_network(within)
        assert address.ip not in (address.network[0], address.network[-1])


@given(nodes, st.integers(1, 100))
def test_the_addresses_of_a_node_are_all_different(node: str, among: int) -> None:
    seats = [network(RANGES, "net", f"{node}/{index}", AddressPosition(node, index, among)) for index in range(among)]
    for each in zip(*(seat.ips for seat in seats), strict=True):
        assert len(set(each)) == among
    assert len({seat.hardware_address for seat in seats}) == among


def test_a_hardware_address_is_locally_administered_and_unicast() -> None:
    found = network((), "net0", "worker/nic-0", AddressPosition("worker", 0, 1))
    assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", found.hardware_address)
    assert found.ips == ()


def test_nodes_have_different_addresses() -> None:
    found = {
        network(RANGES, "net0", f"{node}/nic-0", AddressPosition(node, 0, 16))
        for node in ("node-1", "node-2", "node-3")
    }
    assert len({each.ips for each in found}) == len({each.hardware_address for each in found}) == 3


def test_blocks_returns_how_many_nodes_fit_into_a_range() -> None:
    assert blocks(ipaddress.ip_network("10.0.0.0/24"), 16) == 14
    assert blocks(ipaddress.ip_network("10.0.0.0/30"), 4) < 1
