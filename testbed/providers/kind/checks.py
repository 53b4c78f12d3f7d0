"""Checks before a kind cluster is made: the spec, the engine's permissions, the host's limits. For the provider's preflight."""

from __future__ import annotations

import os
import re
import shutil
import socket
from pathlib import Path

from testbed import process
from testbed.errors import UsageError
from testbed.providers import inotify
from testbed.providers.base import ClusterSpec, HostProblem
from testbed.providers.kind import configuration, images
from testbed.providers.kind.configuration import section_of
from testbed.providers.kind.engine import Engine, is_rootless
from testbed.providers.privileges import lacks_sys_resource

_OLDEST = (0, 31)
_INSTANCES_PER_NODE = 25  # 20 were observed
_RUNTIME = Path(__file__).with_name("runtime.py")


def refuse(spec: ClusterSpec) -> None:
    """Raise UsageError for what kind cannot do on any host."""
    section = section_of(spec)
    if section.patch:
        configuration.read_patch(section.patch)
    unknown = sorted(spec.gates_unknown_to_scheduler & spec.feature_gates.keys())
    if unknown:
        raise UsageError(
            f"kind sets feature gates on all components, but the scheduler does not know {', '.join(unknown)}",
            hint="omit it, or use --provider local",
        )


def refuse_image(using: Engine, spec: ClusterSpec) -> None:
    """Raise UsageError if the given node image has another Kubernetes version. Skip an image that the engine has not pulled yet."""
    given = section_of(spec).node_image
    if given and using.has_image(given):
        images.check_version(using, given, spec.kubernetes)


def missing_capability(using: Engine) -> list[HostProblem]:
    """Return a problem if root lacks a capability: nodes are privileged containers, which then need our runtime wrapper."""
    if not lacks_sys_resource() or using.info("runtime") not in ("runc", "crun", ""):
        return []
    if not _is_here(using):
        return []  # it runs outside of our container or in a virtual machine, where root may have the capability
    wrapper = f"--add-runtime dra-testbed={_RUNTIME} --default-runtime dra-testbed"
    cure = f"start the engine with the wrapper that removes the capability from containers: dockerd {wrapper}"
    return [HostProblem("root lacks CAP_SYS_RESOURCE here, so privileged containers do not start", cure)]


def old_kind() -> list[HostProblem]:
    """Return a remark if the kind on PATH is too old for today's node images."""
    found = shutil.which("kind")
    if not found:
        return []
    output = process.run([found, "--version"], check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", output)
    if version and (int(version[1]), int(version[2])) >= _OLDEST:
        return []
    what = f"{found} is {output.strip() or 'of an unknown version'}; current node images need 0.{_OLDEST[1]} or newer"
    return [HostProblem(what, "install a newer kind, or remove it from PATH: dra-testbed has its own", fatal=False)]


def inotify_instances(using: Engine, nodes: int) -> list[HostProblem]:
    """Return a problem if the nodes may need more inotify instances than the host has: systemd, containerd and others need some.

    The kernel limits them per user, so the number available to us is only meaningful if the nodes run as our user.
    """
    minimum = inotify.SEEN_ON_A_NODE * (nodes + 1) + inotify.SEEN_ON_CONTROL_PLANE
    wanted = _INSTANCES_PER_NODE * (nodes + 1)
    found = inotify.shortage(minimum, wanted)
    if not found or _runs_as_our_user(using):
        return found
    return inotify.low_limit(wanted) if _is_here(using) else []


def _runs_as_our_user(using: Engine) -> bool:
    """Return True if root in the engine's containers is our user on this host."""
    return _is_here(using) and is_rootless(using) == (os.geteuid() != 0)


def _is_here(using: Engine) -> bool:
    return using.info("host") in ("", socket.gethostname())
