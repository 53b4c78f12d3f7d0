"""Gives each boot of a kind node a boot ID of its own, for its kubelet and its containers. Called before a node is rebooted.

A node is a container, so it has the boot ID of the host, and restarting it is not a reboot for a program that compares IDs.
"""

from __future__ import annotations

import json

from testbed.errors import TestbedError
from testbed.providers.base import Node
from testbed.providers.container_spec import show_boot_id

_SPEC = "/etc/containerd/cri-base.json"
_UNITS, _UNIT = "/etc/systemd/system", "dra-testbed-boot-id.service"
_ID, _MADE = "/proc/sys/kernel/random/boot_id", "/run/dra-testbed-boot-id"
_SERVICE = f"""[Unit]
Description=Give this boot of the node an ID of its own
DefaultDependencies=no
Before=containerd.service kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'cat /proc/sys/kernel/random/uuid >{_MADE}'
ExecStart=/bin/mount --bind {_MADE} {_ID}
ExecStart=/bin/mount -o remount,bind,ro {_ID}
"""
_WRITE = 'mkdir -p "${1%/*}" && printf %s "$2" >"$1"'
_ENABLE = f"mkdir -p {_UNITS}/multi-user.target.wants && ln -sf {_UNITS}/{_UNIT} {_UNITS}/multi-user.target.wants/"


def prepare(node: Node) -> None:
    """Let systemd mount a new boot ID over that of the host when the node starts, and containerd mount it into containers."""
    spec = with_hook(node.run("cat", _SPEC).stdout, node.name)
    for path, text in ((_SPEC, spec), (f"{_UNITS}/{_UNIT}", _SERVICE)):
        node.run("sh", "-c", _WRITE, "sh", path, text)
    node.run("sh", "-c", _ENABLE)


def with_hook(spec: str, node: str) -> str:
    """Return the base OCI spec of kind's node images with our hook, once. Raise TestbedError if it is no such spec."""
    try:
        content = json.loads(spec)
        hooks = content.setdefault("hooks", {}).setdefault("createContainer", [])
    except (ValueError, AttributeError) as damage:
        raise TestbedError(
            f"{_SPEC} on node {node} is not a base OCI spec", hint="use a node image of kind"
        ) from damage
    if show_boot_id() not in hooks:
        hooks.append(show_boot_id())
    return json.dumps(content, indent=1)
