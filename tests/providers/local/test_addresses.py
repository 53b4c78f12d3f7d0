"""The address plan: ranges of testbeds never overlap, and ranges in use by the host are avoided."""

import ipaddress

import pytest

from testbed.providers.local.addresses import MOST_NODES, Addresses, candidates


def test_all_addresses_of_a_testbed_are_in_its_range() -> None:
    addresses = Addresses(140)
    everything = ipaddress.IPv4Network(addresses.everything)

    single = [
        addresses.host,
        addresses.control_plane,
        addresses.resolver,
        addresses.kubernetes_service,
        addresses.dns_service,
        addresses.node(1),
        addresses.node(MOST_NODES),
    ]
    parts = [
        addresses.services,
        addresses.pods,
        addresses.machines,
        addresses.pods_of(1),
        addresses.pods_of(MOST_NODES),
    ]
    ranges = [ipaddress.IPv4Network(part) for part in parts]

    assert all(ipaddress.ip_address(address) in everything for address in single)
    assert all(part.subnet_of(everything) for part in ranges)


def test_pods_machines_and_services_do_not_overlap() -> None:
    addresses = Addresses(140)
    machines = ipaddress.ip_network(f"{addresses.control_plane}/24", strict=False)
    parts = [machines, ipaddress.ip_network(addresses.services)]
    parts += [ipaddress.ip_network(addresses.pods_of(n)) for n in range(1, MOST_NODES + 1)]

    assert all(not a.overlaps(b) for i, a in enumerate(parts) for b in parts[i + 1 :])


def test_the_kubernetes_service_has_the_first_address_of_the_services() -> None:
    addresses = Addresses(140)

    assert addresses.kubernetes_service == str(next(ipaddress.ip_network(addresses.services).hosts()))


def test_a_range_that_the_host_uses_is_not_a_candidate() -> None:
    first = candidates("dev", [])[0]
    route = ipaddress.IPv4Network(first.everything)

    assert first.octet not in [addresses.octet for addresses in candidates("dev", [route])]


def test_if_the_host_uses_all_of_10_another_private_range_is_a_candidate() -> None:
    plans = candidates("dev", [ipaddress.IPv4Network("10.0.0.0/8")])

    assert plans
    assert all(ipaddress.IPv4Network("100.64.0.0/10").supernet_of(ipaddress.IPv4Network(p.everything)) for p in plans)


def test_the_same_name_tries_the_same_ranges_first() -> None:
    assert candidates("dev", []) == candidates("dev", [])


@pytest.mark.parametrize("octet", [128, 223])
def test_the_name_of_the_link_fits_the_kernels_limit(octet: int) -> None:
    assert len(Addresses(octet).host_link) <= 15


def test_hardware_addresses_are_local_unicast_and_distinct() -> None:
    macs = [Addresses(140).hardware(n) for n in range(MOST_NODES + 1)]

    assert len(set(macs)) == len(macs)
    assert all(int(mac.split(":")[0], 16) & 0b11 == 0b10 for mac in macs)
