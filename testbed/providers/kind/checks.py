"""What is looked at before a kind cluster is made: the request, the engine's rights, the host's limits. For the provider's preflight."""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path

from testbed import process
from testbed.errors import UsageError
from testbed.providers import inotify
from testbed.providers.base import ClusterSpec, Problem
from testbed.providers.kind import configuration, images
from testbed.providers.kind.configuration import section_of
from testbed.providers.kind.engine import Engine, is_rootless
from testbed.providers.privileges import lacks_sys_resource

_OLDEST = (0, 31)
_INSTANCES_PER_NODE = 25  # 20 were seen
_RUNTIME = Path(__file__).with_name("runtime.py")


def refuse(spec: ClusterSpec) -> None:
    """UsageError for what kind cannot be asked for, whatever the host."""
    section = section_of(spec)
    if section.patch:
        configuration.read_patch(section.patch)
    unknown = sorted(spec.gates_unknown_to_scheduler & spec.feature_gates.keys())
    if unknown:
        raise UsageError(
            f"kind gives every gate to every component, and the scheduler does not know {', '.join(unknown)}",
            hint="leave it out, or use --provider local",
        )


def refuse_image(using: Engine, spec: ClusterSpec) -> None:
    """UsageError for a node image of another version, as far as the engine has it already."""
    given = section_of(spec).node_image
    if given and using.has_image(given):
        images.check_version(using, given, spec.kubernetes)


def privileges(using: Engine) -> list[Problem]:
    """A node is a privileged container. Where root lacks a capability, only our runtime wrapper can start one."""
    if not lacks_sys_resource() or using.says("runtime") not in ("runc", "crun", ""):
        return []
    if not _is_here(using):
        return []  # it runs outside our container or in a machine of its own, and may do what we may not
    wrapper = f"--add-runtime dra-testbed={_RUNTIME} --default-runtime dra-testbed"
    cure = f"start the engine with the wrapper that leaves that capability out: dockerd {wrapper}"
    return [Problem("root lacks CAP_SYS_RESOURCE here, so privileged containers do not start", cure)]


def old_kind() -> list[Problem]:
    """A kind of the user's that is older than the images that it would start."""
    found = shutil.which("kind")
    if not found:
        return []
    said = process.run([found, "--version"], check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version and (int(version[1]), int(version[2])) >= _OLDEST:
        return []
    what = f"{found} is {said.strip() or 'silent about its version'}; node images of today want 0.{_OLDEST[1]} or newer"
    return [Problem(what, "install a newer kind, or take it off PATH: dra-testbed brings its own", fatal=False)]


def instances(using: Engine, nodes: int) -> list[Problem]:
    """All nodes share this host's limit; systemd, containerd, the kubelet and kube-proxy of each want some.

    The kernel counts them for each user, so what we have left says something only where the nodes run as our user.
    """
    least = inotify.SEEN_ON_A_NODE * (nodes + 1) + inotify.SEEN_ON_CONTROL_PLANE
    wanted = _INSTANCES_PER_NODE * (nodes + 1)
    found = inotify.shortage(least, wanted)
    if not found or _runs_as_us(using):
        return found
    return inotify.low_limit(wanted) if _is_here(using) else []


def _runs_as_us(using: Engine) -> bool:
    """Whether root in the engine's containers is our user on this host."""
    return _is_here(using) and is_rootless(using) == (os.geteuid() != 0)


def _is_here(using: Engine) -> bool:
    return using.says("host") in ("", socket.gethostname())
