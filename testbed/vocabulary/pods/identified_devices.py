"""Finds out which devices a container sees, from what its probe shows: values of the identity attribute, or names.

What is shown means first of all a device that is allocated to the pod, as it was published then. Only what fits none of them is looked up
among the devices that are published now, or were before. Devices of other nodes never count, unless the identity is unique in the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from testbed.drivers.published.identities import identity_of
from testbed.drivers.published.record import PublishedDevice, described
from testbed.drivers.published.slices import Device
from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile
from testbed.vocabulary.claims import Claim
from testbed.vocabulary.world import World

Known = dict[str, frozenset[Device]]
_HINT = "let spec.probe of the driver file show an attribute instead of names, and name it in spec.devices.identity"


def known_devices(
    world: World, node: str, claims: Iterable[Claim], shown: Collection[str], *, by_name: bool = False
) -> dict[str, Device]:
    """Return devices by what a probe in a container on a node shows: names or identities. Raise UsageError if one means several devices."""
    file, slices = world.driver_file, world.slices()
    everywhere = file.is_identity_unique and not by_name
    published = {each.device for each in described(slices)}
    former = list(world.record.newest.values())
    allocated = [each for claim in claims for each in claim.record_devices()]
    known: Known = {}
    for devices in (former, [each for each in former if each.device in published], allocated):
        usable = (each for each in devices if everywhere or each.is_usable_on(node))
        known |= by_identity(usable, file, by_name=by_name)
    for each in shown:
        if len(known.get(each, ())) > 1:
            raise UsageError(f"{each} of a container on node {node} is ambiguous: {_named(known[each])}", hint=_HINT)
    return {each: min(devices) for each, devices in known.items()}


def by_identity(devices: Iterable[PublishedDevice], file: DriverFile, *, by_name: bool = False) -> Known:
    """Return the driver's devices by their identities, or by their names."""
    found: Known = {}
    for identity, device in _identified(devices, file, by_name=by_name):
        found[identity] = found.get(identity, frozenset()) | {device}
    return found


def _identified(devices: Iterable[PublishedDevice], file: DriverFile, *, by_name: bool) -> Iterator[tuple[str, Device]]:
    for each in devices:
        identity = each.device.name if by_name else identity_of(each.description, file)
        if identity and each.device.driver == file.driver:
            yield identity, each.device


def _named(devices: Iterable[Device]) -> str:
    one, other, *_ = sorted(devices)
    return f"pool {one.pool} and pool {other.pool} have one" if one.pool != other.pool else f"{one} and {other} have it"
