"""Where the driver's sockets are, and how their places are kept free of dead ones. The server asks.

Linux allows 107 bytes in the path of a socket, which a long name of a driver and the UID of a pod exceed together. Then the name is
shortened, as Kubernetes' own library for drivers does it.
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
_LONGEST = 107  # bytes that fit into a socket address, beside the closing zero
_POD_UID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SHORT = "[-_A-Za-z0-9]{11}"  # what `_hashed` makes of 8 bytes


class SocketPaths:
    """Where the sockets are: two for the kubelet, and one for `control`.

    With a pod UID in their names, two pods of the driver can serve side by side during an update.
    """

    def __init__(self, driver: str, pod_uid: str, registry: Path, data: Path) -> None:
        short, tiny = _hashed(pod_uid, 8), _hashed(f"{driver}\0{pod_uid}", 16)
        plain = re.escape(driver)
        self.registration, alike = _first_that_fits(
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
        self._is_nameless = not self.registration.name.startswith(driver)
        # This folder is ours alone. What starts with a dot was on its way to its name when its process was killed.
        own = rf"(dra-|c-)?({_POD_UID}|{_SHORT})\.sock|(dra|control)\.sock|\.[0-9a-f]{{8}}"
        names = (f"dra-{pod_uid}.sock", f"dra-{short}.sock", f"{short}.sock") if pod_uid else ("dra.sock",)
        self.service, _ = _first_that_fits(data, [(name, own) for name in names])
        # Where `fake_driver.control` in the same pod finds it.
        self.control, _ = _first_that_fits(data, [(f"c-{short}.sock" if pod_uid else "control.sock", own)])
        self._data = data
        self._siblings = ((registry, re.compile(alike)), (data, re.compile(own)))

    def create_folders(self) -> None:
        """Make the folders; remove the sockets of predecessors that were killed: the kubelet would try them for ever.

        A predecessor that still serves at our own names loses them when we serve: without a gap, in which he would take them back.
        """
        for folder, _ in self._siblings:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.remove_stale()
        # The kubelet may have made this folder for our mount; nobody else has business in it.
        self._data.chmod(0o700)
        if self._is_nameless:
            self._note(self.registration).touch(mode=0o600)

    def remove_stale(self) -> None:
        """Remove the sockets that are this driver's, of whichever pod, and of which nobody hears any more."""
        for folder, pattern in self._siblings:
            for path in folder.glob("*"):
                is_ours = pattern.fullmatch(path.name) or self._note(path).is_file()
                if is_ours and path.is_socket() and is_stale(path):
                    log.info("removing the stale socket %s", path)
                    path.unlink(missing_ok=True)
        registry = self.registration.parent
        for note in self._data.glob("dra-*-reg.sock"):
            if note.is_file() and not (registry / note.name).exists():
                note.unlink(missing_ok=True)

    def _note(self, path: Path) -> Path:
        """A file that is there when a socket in the registry is ours, though our name is not in its own."""
        return self._data / path.name


def _first_that_fits(folder: Path, names: Iterable[tuple[str, str]]) -> tuple[Path, str]:
    """The first path that is short enough, and the pattern of its siblings."""
    length = 0
    for name, alike in names:
        length = len(os.fsencode(folder / name))
        if length <= _LONGEST:
            return folder / name, alike
    raise ConfigurationError(
        f"a socket in {folder} would have a path of {length} bytes, but Linux allows {_LONGEST}; use a shorter folder"
    )


def _hashed(text: str, size: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).decode().rstrip("=")


def is_stale(path: Path) -> bool:
    """Whether nobody listens at a socket any more."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
