"""Checks how many inotify instances are available: the kernel limits them per user. For the preflight of providers."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

from testbed.providers.base import HostProblem

SEEN_ON_A_NODE = 9  # 6 of the kubelet, 2 of containerd, 1 of kube-proxy
SEEN_ON_CONTROL_PLANE = 8  # 3 of the API server and 5 of the controller manager
_SETTING = Path("/proc/sys/fs/inotify/max_user_instances")


def shortage(minimum: int, wanted: int) -> list[HostProblem]:
    """Return a problem if fewer than `wanted` are available; it is fatal if fewer than `minimum` are."""
    left = available(wanted)
    if left >= wanted:
        return []
    what = (
        f"this user can create {left} more inotify instances{_limit()}, but the nodes may need {wanted}: "
        "programs in them end with 'too many open files'"
    )
    return [HostProblem(what, _cure(wanted), fatal=left < minimum)]


def low_limit(wanted: int) -> list[HostProblem]:
    """Return a remark if the limit per user is below `wanted`. How many another user, such as root, has left cannot be tested."""
    most = _setting()
    if most is None or most >= wanted:
        return []
    what = (
        f"a user can create at most {most} inotify instances, but the nodes may need {wanted}: "
        "programs in them may end with 'too many open files'"
    )
    return [HostProblem(what, _cure(wanted), fatal=False)]


def available(wanted: int) -> int:
    """Return how many of `wanted` instances this user can create, by creating them: /proc does not show those of other containers."""
    most = min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)  # each one is an open file of this process
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):  # not Linux
        return wanted
    created: list[int] = []
    try:
        while len(created) < most and (descriptor := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
            created.append(descriptor)
    finally:
        for descriptor in created:
            os.close(descriptor)
    return wanted if len(created) == most else len(created)


def _cure(wanted: int) -> str:
    return f"sysctl fs.inotify.max_user_instances={max(512, 2 * wanted)}"


def _limit() -> str:
    most = _setting()
    return "" if most is None else f" of {most}"


def _setting() -> int | None:
    try:
        return int(_SETTING.read_text())
    except (OSError, ValueError):
        return None
