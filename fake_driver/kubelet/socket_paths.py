"""The paths of the driver's sockets, and the removal of stale sockets.

Linux allows 107 bytes in the path of a socket. If a long driver name and a pod UID exceed that, the name is shortened, as in Kubernetes'
library for DRA drivers.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from fake_driver.errors import ConfigurationError

log = logging.getLogger(__name__)
_MAX_PATH = 107  # bytes in a socket address, without the terminating zero
_POD_UID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SHORT = "[-_A-Za-z0-9]{11}"  # the result of `_hashed` with 8 bytes


class SocketPaths:
    """The paths of a driver process's sockets: two for the kubelet and one for `control`.

    With a pod UID in the names, two pods of the driver can serve at the same time during an update.
    """

    def __init__(self, driver: str, pod_uid: str, registry: Path, data: Path) -> None:
        short, tiny = _hashed(pod_uid, 8), _hashed(f"{driver}\0{pod_uid}", 16)
        plain = re.escape(driver)
        self.registration, similar = _first_that_fits(
            registry,
            (
                (
                    f"{driver}-{pod_uid}-reg.sock" if pod_uid else f"{driver}-reg.sock",
                    rf"{plain}(-{_POD_UID})?-reg\.sock",
                ),
                (f"{driver}-{short}-reg.sock", rf"{plain}(-{_SHORT})?-reg\.sock"),
                (f"dra-{tiny}-reg.sock", rf"{plain}-reg\.sock|dra-{tiny}-reg\.sock"),
            ),
        )
        self._lacks_driver_name = not self.registration.name.startswith(driver)
        # This folder belongs to this driver. Names with a dot are of sockets whose process was killed before it renamed them.
        own = rf"(dra-|c-)?({_POD_UID}|{_SHORT})\.sock|(dra|control)\.sock|\.[0-9a-f]{{8}}"
        names = (f"dra-{pod_uid}.sock", f"dra-{short}.sock", f"{short}.sock") if pod_uid else ("dra.sock",)
        self.service, _ = _first_that_fits(data, [(name, own) for name in names])
        # `fake_driver.control` in the same pod computes the same path.
        self.control, _ = _first_that_fits(data, [(f"c-{short}.sock" if pod_uid else "control.sock", own)])
        self._data = data
        self._siblings = ((registry, re.compile(similar)), (data, re.compile(own)))

    def prepare_folders(self) -> None:
        """Create the folders, and remove the sockets of killed predecessors, which the kubelet would try forever.

        The sockets of a running predecessor with the same names are replaced later, atomically, so that it does not create them again.
        """
        for folder, _ in self._siblings:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.remove_stale()
        # The kubelet may have created this folder for our mount, with access for other users.
        self._data.chmod(0o700)
        if self._lacks_driver_name:
            self._marker(self.registration).touch(mode=0o600)

    def remove_stale(self) -> None:
        """Remove the sockets of this driver, of any pod, on which no process listens."""
        for folder, pattern in self._siblings:
            for path in folder.glob("*"):
                is_ours = pattern.fullmatch(path.name) or self._marker(path).is_file()
                if is_ours and path.is_socket() and is_stale(path):
                    log.info("removing the stale socket %s", path)
                    path.unlink(missing_ok=True)
        registry = self.registration.parent
        for marker in self._data.glob("dra-*-reg.sock"):
            if marker.is_file() and not (registry / marker.name).exists():
                marker.unlink(missing_ok=True)

    def _marker(self, path: Path) -> Path:
        """Return the path of a file that marks a socket in the registry as ours, for names that do not contain the driver's name."""
        return self._data / path.name


def _first_that_fits(folder: Path, names: Iterable[tuple[str, str]]) -> tuple[Path, str]:
    """Return the first path that is short enough, and the pattern of its sockets of other pods."""
    length = 0
    for name, similar in names:
        length = len(os.fsencode(folder / name))
        if length <= _MAX_PATH:
            return folder / name, similar
    raise ConfigurationError(
        f"a socket in {folder} would have a path of {length} bytes, but Linux allows {_MAX_PATH}; use a shorter folder"
    )


def _hashed(text: str, size: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).decode().rstrip("=")


def is_stale(path: Path) -> bool:
    """Return True if no process listens on a socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
