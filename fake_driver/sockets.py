"""Where the driver's two sockets are, and how their places are kept free of dead ones. The server asks."""

from __future__ import annotations

import logging
import os
import re
import socket
from pathlib import Path

from fake_driver.errors import ConfigurationError

log = logging.getLogger(__name__)
_LONGEST = 107  # bytes that fit into a socket address, beside the closing zero
_POD_UID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Sockets:
    """Where the two sockets are. With a pod UID in their names, two pods of the driver can serve side by side during an update."""

    def __init__(self, driver: str, pod_uid: str, registry: Path, data: Path) -> None:
        self.registration = registry / (f"{driver}-{pod_uid}-reg.sock" if pod_uid else f"{driver}-reg.sock")
        self.service = data / (f"dra-{pod_uid}.sock" if pod_uid else "dra.sock")
        self._siblings = (
            (registry, re.compile(rf"{re.escape(driver)}(-{_POD_UID})?-reg\.sock")),
            (data, re.compile(rf"dra(-{_POD_UID})?\.sock")),
        )
        for path in (self.registration, self.service):
            length = len(os.fsencode(path))
            if length > _LONGEST:
                raise ConfigurationError(
                    f"the socket {path} would have a path of {length} bytes, but Linux allows {_LONGEST}; use a shorter driver name"
                )

    def make_room(self) -> None:
        """Make the folders; remove our own sockets, and those of predecessors that were killed: the kubelet would try them for ever."""
        for folder, pattern in self._siblings:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in folder.iterdir():
                own = path in {self.registration, self.service}
                if pattern.fullmatch(path.name) and path.is_socket() and (own or _is_dead(path)):
                    log.info("removing the stale socket %s", path)
                    path.unlink(missing_ok=True)
        # The kubelet may have made this folder for our mount; nobody else has business in it.
        self.service.parent.chmod(0o700)


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
