"""Opaque configuration of this driver in DeviceClasses and claims. Pure; the driver applies it when it prepares a claim.

    apiVersion: resource.dra-testbed.example/v1alpha1
    kind: GpuConfig                              # for devices without a network
    env: {a: b}                                  # the container gets user_a=b; from a class, admin_a=b
    sharing: {strategy: TimeSlicing, interval: Long}         # or {strategy: SpacePartitioning, partitions: 4}
    ---
    kind: NicConfig                              # for devices with one
    env: {a: b}
    interfaceName: net1
    mtu: 9000
    vlan: 7
    addresses: [192.0.2.7/24]

A claim overrides its class, and a later entry an earlier one. An entry applies to the requests that it names, or to all of them.
Decoding is strict: an unknown field is an error, so that a typing error is reported to its author.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fake_driver.errors import ClaimRefused, suggestion
from fake_driver.name_patterns import matches
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, Object
from fake_driver.strict_decoding import Section

API_VERSION = "resource.dra-testbed.example/v1alpha1"
INTERFACE, IPS = "INTERFACE", "IPS"  # they override the values of the hardware file
Facts = Mapping[str, str]
_MOST_PROBLEMS, _LONGEST_REPORT = 5, 1500
_MOST_ADDRESSES = 16  # the limit of the API for a device status
_LONGEST_VALUE = 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_INTERFACE_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,14}")


@dataclass(frozen=True)
class OpaqueConfig:
    """One entry of configuration. Its values are in groups, because a later entry replaces a whole group."""

    kind: str
    from_class: bool = False
    requests: tuple[str, ...] = ()
    variables: Facts = field(default_factory=dict)
    groups: Mapping[str, Facts] = field(default_factory=dict)

    def applies_to(self, request: str) -> bool:
        """Return True if the entry applies to a request, which may be `request/subrequest`."""
        return not self.requests or request in self.requests or request.partition("/")[0] in self.requests


Precedence = Callable[[Sequence[OpaqueConfig]], Sequence[OpaqueConfig]]


def read_configs(claim: Object, ref: ClaimRef, driver: str) -> list[OpaqueConfig]:
    """Return the claim's configuration for this driver in the order of the claim. Raise ClaimRefused if any of it is invalid."""
    entries = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("config") or []
    problems: list[str] = []
    found = [
        _config(f"status.allocation.devices.config[{index}]", entry, problems)
        for index, entry in enumerate(entries) if (entry.get("opaque") or {}).get("driver") == driver
    ]  # fmt: skip
    if problems:
        raise ClaimRefused(f"claim {ref} has invalid configuration: {_summary(problems)}")
    return found


def by_precedence(configs: Sequence[OpaqueConfig]) -> Sequence[OpaqueConfig]:
    """Return the entries of classes, then those of the claim: a later one overrides an earlier one."""
    return sorted(configs, key=lambda config: not config.from_class)


def apply_configs(device: AllocatedDevice, configs: Sequence[OpaqueConfig], *, is_network: bool) -> AllocatedDevice:
    """Return the device configured by the entries that apply to it, in this order."""
    kind = "NicConfig" if is_network else "GpuConfig"
    applicable = [config for config in configs if config.applies_to(device.request)]
    for config in applicable:
        # Entries of classes and entries for all requests may meet devices of another kind, which ignore them.
        if config.kind != kind and config.requests and not config.from_class:
            raise ClaimRefused(
                f"{config.kind} names request {device.request}, but its device {device.device} takes {kind}"
            )
    groups: dict[str, Facts] = {}
    variables: dict[str, str] = {}
    for config in (config for config in applicable if config.kind == kind):
        groups.update(config.groups)
        variables.update(config.variables)
    facts = {name: value for group in groups.values() for name, value in group.items()}
    return replace(device, facts=facts, variables=variables)


def _config(where: str, entry: Object, problems: list[str]) -> OpaqueConfig:
    section = Section(f"{where}.opaque.parameters", entry["opaque"].get("parameters"), problems)
    from_class = entry.get("source") == "FromClass"
    section.constant("apiVersion", API_VERSION)
    kind = _choice(section, "kind", _KINDS)
    if not kind:
        return OpaqueConfig("")
    prefix = "admin" if from_class else "user"
    variables = {f"{prefix}_{name}": value for name, value in _env(section).items()}
    groups = _KINDS[kind](section)
    section.check_unknown_keys()
    return OpaqueConfig(kind, from_class, tuple(entry.get("requests") or ()), variables, groups)


def _gpu(section: Section) -> dict[str, Facts]:
    if "sharing" not in section.content:
        section.known_keys.add("sharing")
        return {}
    sharing = section.section("sharing")
    strategy = _choice(sharing, "strategy", ("TimeSlicing", "SpacePartitioning"))
    facts = {"SHARING_STRATEGY": strategy}
    if strategy == "TimeSlicing":
        facts["SHARING_INTERVAL"] = _choice(sharing, "interval", ("Default", "Short", "Medium", "Long"), "Default")
    elif strategy:
        facts["SHARING_PARTITIONS"] = str(_number(sharing, "partitions", 1, 16, 1))
    if strategy:
        sharing.check_unknown_keys()
    return {"sharing": facts}


def _nic(section: Section) -> dict[str, Facts]:
    groups: dict[str, Facts] = {}
    for key, name, read in _NIC_FIELDS:
        section.known_keys.add(key)
        if key in section.content:
            groups[key] = {name: read(section, key)}
    return groups


_KINDS: Mapping[str, Callable[[Section], dict[str, Facts]]] = {"GpuConfig": _gpu, "NicConfig": _nic}


def _env(section: Section) -> dict[str, str]:
    found = {}
    for name, value in (section.get("env", dict, {}) or {}).items():
        if not matches(_VARIABLE, name):
            section.add_problem(
                "env",
                f"has the name {name!r}, but names must be at most 63 letters, digits and _, and begin with no digit",
            )
        elif not (isinstance(value, str) and len(value) <= _LONGEST_VALUE and (value.isprintable() or not value)):
            section.add_problem(f"env.{name}", f"must be a printable text of at most {_LONGEST_VALUE} characters")
        else:
            found[name] = value
    return found


def _interface(section: Section, key: str) -> str:
    return section.matching(key, _INTERFACE_NAME, "the name of a network interface of at most 15 characters")


def _addresses(section: Section, key: str) -> str:
    given = section.get(key, list, []) or []
    if len(given) > _MOST_ADDRESSES:
        section.add_problem(key, f"has {len(given)} addresses, but a device may have {_MOST_ADDRESSES}")
        return ""
    return ",".join(_address(section, f"{key}[{index}]", text) for index, text in enumerate(given))


def _address(section: Section, path: str, text: object) -> str:
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and "/" in text and "%" not in text:
            return str(ipaddress.ip_interface(text))
    section.add_problem(path, f"is {text!r}, but must be an address with a prefix length, such as 192.0.2.7/24")
    return ""


_NIC_FIELDS: tuple[tuple[str, str, Callable[[Section, str], str]], ...] = (
    ("interfaceName", INTERFACE, _interface),
    ("mtu", "MTU", lambda section, key: str(_number(section, key, 68, 9216))),
    ("vlan", "VLAN", lambda section, key: str(_number(section, key, 1, 4094))),
    ("addresses", IPS, _addresses),
)


def _choice(section: Section, key: str, choices: Iterable[str], default: str | None = None) -> str:
    value = section.get(key, str, default)
    if value is None or value in choices:
        return value or ""
    section.add_problem(key, f"is {value!r}; {suggestion(value, choices)}")
    return ""


def _number(section: Section, key: str, least: int, most: int, default: int | None = None) -> int:
    value = section.get(key, int, default)
    if value is not None and not least <= value <= most:
        section.add_problem(key, f"is {value}, but must be {least} to {most}")
    return value or 0


def _summary(problems: Sequence[str]) -> str:
    """Return the first problems on one line, short enough for an event and without unprintable characters of the user."""
    distinct = list(dict.fromkeys(problems))
    more = f"; and {len(distinct) - _MOST_PROBLEMS} more" if len(distinct) > _MOST_PROBLEMS else ""
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in "; ".join(distinct[:_MOST_PROBLEMS])
    )
    return f"{text[:_LONGEST_REPORT]}…{more}" if len(text) > _LONGEST_REPORT else text + more
