"""Decode one group of devices in a hardware file, for `hardware_file`."""

from __future__ import annotations

import ipaddress
import re

from fake_driver.devices.model import (
    AttachBehavior,
    Attributes,
    Binding,
    DeviceGroup,
    NetworkTemplate,
    Partitioning,
    PartitionProfile,
    Quantities,
)
from fake_driver.devices.quantities import amount
from fake_driver.hardware import device_fields
from fake_driver.hardware.addresses import Range, blocks
from fake_driver.hardware.container_edits import edits
from fake_driver.name_patterns import LABEL_KEY, matches
from fake_driver.strict_decoding import Section

MOST_DEVICES = 10_000
_MOST_ENTRIES = 32  # attributes and capacities of one device together
_MOST_COUNTERS = 32
_MOST_CONDITIONS = 4
_LONGEST_ATTACHING, _MOST_FAILURES = 600, 1000
_KIND = re.compile(r"[a-z](?:[-a-z0-9]{0,30}[a-z0-9])?")
_PROFILE = re.compile(r"[a-z0-9](?:[-.a-z0-9]{0,14}[a-z0-9])?")
_COUNTER = re.compile(r"[a-z][a-z0-9]{0,31}")
_INTERFACE = re.compile(r"[a-z]{1,6}")


def group(section: Section) -> DeviceGroup:
    """Return the group that a section describes, and add its problems to the section."""
    kind = section.matching("kind", _KIND, "a short DNS label that starts with a letter")
    count = _count(section, MOST_DEVICES)
    capacity, policies = device_fields.capacity(section)
    rows = tuple(
        device_fields.attributes_from(section, f"perDevice[{i}]", row)
        for i, row in enumerate(section.get("perDevice", list, []) or [])
    )
    if rows and len(rows) != count:
        section.add_problem("perDevice", f"has {len(rows)} rows for {count} devices")
    found = DeviceGroup(
        kind,
        count,
        device_fields.attributes(section),
        capacity,
        rows,
        spread=device_fields.spread(section),
        nodes=device_fields.strings(section, "nodes", ("*",)),
        taints=device_fields.taints(section),
        shared=device_fields.boolean(section, "allowMultipleAllocations"),
        policies=policies,
        binding=_binding(section),
        network=_network(section) if "network" in section.content else None,
        partitions=_partitions(section.section("partitions")) if "partitions" in section.content else None,
        container_edits=edits(section.section("containerEdits")) if "containerEdits" in section.content else {},
    )
    section.known_keys |= {"network", "partitions", "containerEdits"}
    _check(section, found)
    section.check_unknown_keys()
    return found


def _count(section: Section, most: int) -> int:
    count = section.get("count", int)
    if count is not None and not 1 <= count <= most:
        section.add_problem("count", f"must be 1 to {most}")
    return count or 0


def _check(section: Section, found: DeviceGroup) -> None:
    """Add problems that concern several keys."""
    if found.policies and not found.shared:
        section.add_problem("capacity", "has a requestPolicy, which needs allowMultipleAllocations: true")
    if found.shared and found.partitions:
        section.add_problem("partitions", "cannot be combined with allowMultipleAllocations")
    automatic = {"index", "uuid"} | ({"profile"} if found.partitions else set())
    automatic |= {"interface", "hardwareAddress"} if found.network else set()
    scalars = dict.fromkeys(found.spread, True)
    common: Attributes = {**dict.fromkeys(automatic, True), **found.attributes, **scalars}
    rows = [{**common, **row} for row in found.per_device or ({},)]
    for row in (max(rows, key=len), max(rows, key=_count_values)):
        _count_entries(section, row, found.capacity)
        for profile in found.partitions.profiles if found.partitions else ():
            _count_entries(section, {**row, "parent": "", **profile.attributes}, profile.capacity)
    for each in found.network.ranges if found.network else ():
        if blocks(ipaddress.ip_network(each), max(1, found.count * found.size)) < 2:
            section.add_problem("network.ranges", f"has {each}, which is too small for the devices of two nodes")


def _count_entries(section: Section, attributes: Attributes, capacity: Quantities) -> None:
    entries = len(attributes) + len(capacity)
    if entries > _MOST_ENTRIES:
        section.add_problem(
            "attributes",
            f"and capacity have {entries} entries together (with index, uuid and others), but may have at most {_MOST_ENTRIES}",
        )
    size = _count_values(attributes)
    if size > device_fields.MOST_VALUES:
        section.add_problem(
            "attributes",
            f"have {size} values (with index, uuid and others), but may have at most {device_fields.MOST_VALUES}",
        )


def _count_values(attributes: Attributes) -> int:
    return sum(len(value) if isinstance(value, tuple) else 1 for value in attributes.values())


def _binding(section: Section) -> Binding | None:
    conditions = device_fields.strings(section, "bindingConditions")
    failures = device_fields.strings(section, "bindingFailureConditions")
    binds = device_fields.boolean(section, "bindsToNode")
    named = (*conditions, *failures)
    if not all(matches(LABEL_KEY, each) for each in named) or len(set(named)) != len(named):
        section.add_problem("bindingConditions", "and bindingFailureConditions must be label keys, all different")
    if max(len(conditions), len(failures)) > _MOST_CONDITIONS:
        section.add_problem(
            "bindingConditions", f"and bindingFailureConditions may have at most {_MOST_CONDITIONS} entries each"
        )
    if bool(conditions) != bool(failures):
        section.add_problem("bindingConditions", "and bindingFailureConditions must be set together")
    attaching = _attaching(section, bool(named)) if "attaching" in section.content else None
    section.known_keys.add("attaching")
    return Binding(conditions, failures, binds, attaching) if named or binds else None


def _attaching(parent: Section, is_needed: bool) -> AttachBehavior:
    """Return how the driver sets the binding conditions: how long it takes, and how often it fails first."""
    if not is_needed:
        parent.add_problem("attaching", "needs bindingConditions")
    section = parent.section("attaching")
    seconds, failures = section.get("seconds", int, 1) or 0, section.get("failures", int, 0) or 0
    if not 0 <= seconds <= _LONGEST_ATTACHING:
        section.add_problem("seconds", f"must be 0 to {_LONGEST_ATTACHING}")
    if not 0 <= failures <= _MOST_FAILURES:
        section.add_problem("failures", f"must be 0 to {_MOST_FAILURES}")
    section.check_unknown_keys()
    return AttachBehavior(seconds, failures)


def _network(parent: Section) -> NetworkTemplate:
    section = parent.section("network")
    interface = section.matching(
        "interface", _INTERFACE, "1 to 6 lowercase letters, to which the index of the device is appended"
    )
    ranges = device_fields.strings(section, "ranges")
    section.check_unknown_keys()
    return NetworkTemplate(interface, tuple(str(each) for text in ranges if (each := _range(section, text))))


def _range(section: Section, text: str) -> Range | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        section.add_problem("ranges", f"has {text!r}, which is not an address range such as 10.64.0.0/10: {error}")
        return None


def _partitions(section: Section) -> Partitioning:
    what = "lowercase letters and digits, beginning with a letter"
    counters = device_fields.quantities(section, "counters", _COUNTER, what)
    if not 1 <= len(counters) <= _MOST_COUNTERS:
        section.add_problem("counters", f"must have 1 to {_MOST_COUNTERS} entries")
    found = tuple(_profile(each, counters) for each in section.sections("profiles"))
    if not found:
        section.add_problem("profiles", "must have at least one entry")
    if len({each.name.replace(".", "-") for each in found}) != len(found):
        section.add_problem("profiles", "has two names that give the same device name")
    whole = device_fields.boolean(section, "whole", default=True)
    section.check_unknown_keys()
    return Partitioning(counters, found, whole)


def _profile(section: Section, counters: dict[str, str]) -> PartitionProfile:
    name = section.matching("name", _PROFILE, "at most 16 lowercase letters, digits, dots and hyphens")
    count = _count(section, MOST_DEVICES)
    takes = device_fields.quantities(section, "takes", _COUNTER, "one of the counters")
    if not takes:
        section.add_problem("takes", "must name at least one counter")
    for counter, taken in takes.items():
        if counter not in counters:
            section.add_problem("takes", f"has {counter!r}, which is not in counters")
        elif (amount(taken) or 0) > (amount(counters[counter]) or 0):
            section.add_problem("takes", f"has {taken} of {counter}, but the counter has {counters[counter]}")
    capacity, policies = device_fields.capacity(section)
    if policies:
        section.add_problem("capacity", "cannot have a requestPolicy: partitions are never shared")
    attributes = device_fields.attributes(section)
    section.check_unknown_keys()
    return PartitionProfile(name, count, takes, attributes, capacity or takes)
