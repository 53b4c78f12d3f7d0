"""Decode a hardware file. All errors are reported at once, each with its path. Values within a device obey the limits of the API.

spec:
  devices:
  - kind: gpu                          # devices gpu-0, gpu-1, …; also the prefix of variables in containers
    count: 2
    attributes: {model: F100, driverVersion: {version: 1.2.3}, healthy: true}
    capacity: {memory: 80Gi}
    spread: {numaNode: [0, 1]}         # distributed in equal parts: the first half gets 0, the other 1
  changes:                             # how some devices differ
  - {nodes: ["*-2"], devices: [gpu-1], taints: [{key: broken, effect: NoSchedule}]}
  pools:                               # devices that belong to no node
  - {name: fabric, allNodes: true, devices: [{kind: port, count: 4}]}

docs/hardware.md explains every key.
"""

from __future__ import annotations

from pathlib import Path

from fake_driver import strict_decoding
from fake_driver.devices import node_selectors
from fake_driver.devices.model import DeviceChange, DeviceGroup, Hardware, NetworkPool
from fake_driver.errors import ConfigurationError
from fake_driver.hardware import device_fields
from fake_driver.hardware.device_groups import MOST_DEVICES, group
from fake_driver.name_patterns import DNS_LABEL, DNS_SUBDOMAIN
from fake_driver.strict_decoding import Section


def read(path: Path) -> Hardware:
    """Return the hardware that a file describes. Raise ConfigurationError if the file is invalid or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as unreadable:
        raise ConfigurationError(f"the hardware file {path} cannot be read: {unreadable}") from unreadable
    return parse(text, str(path))


def parse(text: str, name: str) -> Hardware:
    """Return the hardware that a YAML text describes. Raise ConfigurationError, which names the file, if the text is invalid."""
    problems: list[str] = []
    content = strict_decoding.load(text, name)
    if content is None:
        raise ConfigurationError(f"{name} is empty")
    document = Section("", content, problems)
    document.constant("apiVersion", "dra-testbed/v1alpha1")
    document.constant("kind", "Hardware")
    metadata, spec = document.section("metadata"), document.section("spec")
    hardware_name = metadata.matching("name", DNS_LABEL, "a DNS label")
    groups = _groups(spec)
    changes = tuple(_change(section) for section in spec.sections("changes"))
    pools = tuple(_pool(section) for section in spec.sections("pools"))
    if len({pool.name for pool in pools}) != len(pools):
        spec.add_problem("pools", "has two pools with the same name")
    for section in (document, metadata, spec):
        section.check_unknown_keys()
    if problems:
        listed = "\n".join(f"  {problem}" for problem in strict_decoding.with_lines(problems, text))
        raise ConfigurationError(f"{name} is not a valid hardware file:\n{listed}")
    return Hardware(hardware_name, groups, changes, pools)


def _groups(parent: Section) -> tuple[DeviceGroup, ...]:
    found = tuple(group(section) for section in parent.sections("devices"))
    # Groups for different nodes are added up, although no node has all of them: a simple check with a generous limit.
    total = sum(each.count * each.size for each in found)
    if total > MOST_DEVICES:
        parent.add_problem("devices", f"has {total} devices, but a pool may have at most {MOST_DEVICES}")
    kinds = {each.kind for each in found}
    for each in found:
        longer = sorted(kind for kind in kinds if kind.startswith(f"{each.kind}-")) if each.partitions else []
        if longer:
            parent.add_problem(
                "devices", f"of kind {longer[0]} could have the same names as partitions of kind {each.kind}"
            )
    return found


def _change(section: Section) -> DeviceChange:
    amounts, policies = device_fields.capacity(section)
    if policies:
        section.add_problem("capacity", "cannot change a requestPolicy")
    found = DeviceChange(
        device_fields.strings(section, "nodes", ("*",)),
        device_fields.strings(section, "devices", ("*",)),
        device_fields.attributes(section),
        amounts,
        device_fields.taints(section),
        device_fields.boolean(section, "absent"),
    )
    if found.absent and (found.attributes or found.capacity or found.taints):
        section.add_problem("absent", "cannot be combined with attributes, capacity or taints")
    section.check_unknown_keys()
    return found


def _pool(section: Section) -> NetworkPool:
    name = section.matching("name", DNS_SUBDOMAIN, "a DNS subdomain")
    everywhere = device_fields.boolean(section, "allNodes")
    selector = section.get("nodeSelector", dict, {}) or None
    if everywhere == bool(selector):
        section.add_problem("", "needs either allNodes: true or a nodeSelector")
    for problem in node_selectors.problems(selector) if selector else ():
        section.add_problem("nodeSelector", problem)
    groups = _groups(section)
    section.check_unknown_keys()
    return NetworkPool(name, groups, selector)
