"""What a container has, whatever the probe of the driver file looks at. Used by `trials` and `driver init`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from testbed.vocabulary.pods.device_metadata import FOLDER

_SEPARATOR = "\x1e"
_SHOWN = 3
_METADATA = PurePath(FOLDER).name  # /var/run may be a link
_IGNORED = ("HOSTNAME",)  # differs in every pod
# Sections: variables (line breaks in values are replaced), mount points, device nodes, network interfaces, CPUs and memory nodes.
_SCRIPT = r"""
tr '\n\0' '\1\n' </proc/self/environ; printf '\036'
cut -d' ' -f5 /proc/self/mountinfo; printf '\036'
find /dev -type c -o -type b; printf '\036'
ls /sys/class/net; printf '\036'
grep -E '^(Cpus|Mems)_allowed_list' /proc/self/status
"""
COMMAND = ("sh", "-c", _SCRIPT)


@dataclass(frozen=True)
class Contents:
    """What a container has. Values of variables may be secrets: messages name variables, but never show values."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: frozenset[str] = frozenset()
    device_nodes: frozenset[str] = frozenset()
    interfaces: frozenset[str] = frozenset()
    cpus: frozenset[str] = frozenset()

    def additions_to(self, plain: Contents) -> tuple[str, ...]:
        """Return what differs from a container without a claim, a phrase for each kind: `environment variable ACME_GPU_0`."""
        changed = {name for name, value in self.variables.items() if plain.variables.get(name) != value}
        found = {
            "environment variable": changed,
            "device node": self.device_nodes - plain.device_nodes,
            "mount": self.mounts - plain.mounts,
            "network interface": self.interfaces - plain.interfaces,
        }
        cpus = [f"other {each.replace(chr(9), ' ')}" for each in sorted(self.cpus - plain.cpus)]
        return (*(_phrase(kind, sorted(names)) for kind, names in found.items() if names), *cpus)


def _phrase(kind: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{kind}{'s' * (len(names) > 1)} {', '.join(names[:_SHOWN])}{more}"


def read(output: str) -> Contents:
    """Return what COMMAND printed. A section that its image cannot print is empty.

    Mounts of device metadata are left out: a driver that adds nothing else has not added its device.
    """
    variables, mounts, nodes, interfaces, cpus = (*output.split(_SEPARATOR), "", "", "", "", "")[:5]
    pairs = (line.partition("=") for line in variables.splitlines() if "=" in line)
    return Contents(
        {name: value.replace("\1", "\n") for name, _, value in pairs if name not in _IGNORED},
        frozenset(each for each in mounts.split() if _METADATA not in each),
        frozenset(nodes.split()),
        frozenset(interfaces.split()),
        frozenset(cpus.splitlines()),
    )
