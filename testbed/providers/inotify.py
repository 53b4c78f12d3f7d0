"""How many inotify instances are left: the kernel limits those of each user. For providers' preflights."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

from testbed.providers.base import Problem

SEEN_ON_A_NODE = 8  # a kubelet's 6 and containerd's 2
SEEN_ON_CONTROL_PLANE = 8  # the API server's 3 and the controller manager's 5
_SETTING = Path("/proc/sys/fs/inotify/max_user_instances")


def shortage(least: int, wanted: int) -> list[Problem]:
    """Fatal where not even the least is left, a remark where less than wanted is."""
    left = available(wanted)
    if left >= wanted:
        return []
    what = (
        f"this user can make {left} more inotify instances{_limit()}, and the nodes may want {wanted}: "
        "programs in them end with 'too many open files'"
    )
    return [Problem(what, _cure(wanted), fatal=left < least)]


def low_limit(wanted: int) -> list[Problem]:
    """A remark where the kernel gives no user as many as are wanted: what another user, such as root, has left cannot be tried."""
    most = _setting()
    if most is None or most >= wanted:
        return []
    what = (
        f"a user can make no more than {most} inotify instances, and the nodes may want {wanted}: "
        "programs in them may end with 'too many open files'"
    )
    return [Problem(what, _cure(wanted), fatal=False)]


def available(wanted: int) -> int:
    """How many of them can be made now: tried, for a fraction of a millisecond, as no list of processes shows those of other containers."""
    most = min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)  # each is an open file of ours
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):  # no Linux
        return wanted
    made: list[int] = []
    try:
        while len(made) < most and (one := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
            made.append(one)
    finally:
        for one in made:
            os.close(one)
    return wanted if len(made) == most else len(made)


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
