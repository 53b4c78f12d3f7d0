"""The removal role: remove the driver's files from a node after the driver was uninstalled.

A driver that stops leaves its checkpoint and the CDI files, because normally it is only restarted. An administrator who has uninstalled it
runs this role once. It waits while a claim is prepared, because the pod of the claim needs the files.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from fake_driver.kubelet.socket_paths import SocketPaths, is_stale
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.roles.probes import ProbeServer
from fake_driver.settings import Settings

log = logging.getLogger(__name__)
_SOME_POD = "00000000-0000-0000-0000-000000000000"  # any pod: sockets of all of them are removed
_INTERVAL = 1.0  # seconds between checks of what is in use


class RemovalProcess:
    """Everything that runs in this role."""

    def __init__(self, settings: Settings) -> None:
        self._data = settings.data
        self._sockets = SocketPaths(
            settings.driver, settings.pod_uid or _SOME_POD, Path(settings.registry), settings.data
        )
        self._cdi = CdiFolder(Path(settings.cdi), settings.driver)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="removal", daemon=True)
        checks = {"/readyz": self.not_ready_reasons, "/healthz": list[str]}
        self._probes = ProbeServer(settings.probe_address, checks) if settings.probe_address else None

    def start(self) -> None:
        """Start to wait and remove."""
        self._thread.start()
        if self._probes:
            self._probes.start()

    def stop(self) -> None:
        """Stop, even if the files are not removed yet."""
        self._stopped.set()
        self._thread.join(1)
        if self._probes:
            self._probes.stop()

    def not_ready_reasons(self) -> list[str]:
        """Return why the node is not clean yet; an empty list if it is."""
        return [*self._in_use()] or ["the files are being removed"] * self._data.exists()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                reasons = self._remove()
            except OSError as error:
                reasons = [str(error)]
            if not reasons:
                log.info("all files of the driver are removed from this node")
                return
            log.warning("the files of the driver are not removed yet", extra={"facts": {"because": reasons}})
            self._stopped.wait(_INTERVAL)

    def _remove(self) -> list[str]:
        reasons = list(self._in_use())
        if reasons:
            return reasons
        self._cdi.sweep()
        self._sockets.remove_stale()
        if self._data.exists():
            shutil.rmtree(self._data)
        return []

    def _in_use(self) -> Iterator[str]:
        if any(path.is_socket() and not is_stale(path) for path in self._data.glob("*.sock")):
            yield "the driver is still running: uninstall it first"
        prepared = {path.stem for path in (self._data / "claims").glob("*.json")} | set(self._cdi.claims())
        if prepared:
            yield f"claims are still prepared: delete their pods while the driver runs: {', '.join(sorted(prepared))}"
