"""The last role of the driver: remove from a node what the driver left there, after it was uninstalled. `__main__` runs it.

A driver that ends leaves its checkpoint and the CDI files, because most of the time it is back in a moment. Only people know that it will
not be back; they install this role for a while. It waits as long as a claim is prepared, for its pod still needs what is there.
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
_SOME_POD = "00000000-0000-0000-0000-000000000000"  # which of the driver's pods were here nobody knows any more
_LOOK = 1.0  # seconds between looks at what is still in use


class RemovalProcess:
    """All that runs in this role, from start to stop."""

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
        """Begin to wait and remove."""
        self._thread.start()
        if self._probes:
            self._probes.start()

    def stop(self) -> None:
        """End, whether done or not."""
        self._stopped.set()
        self._thread.join(1)
        if self._probes:
            self._probes.stop()

    def not_ready_reasons(self) -> list[str]:
        """Why the node is not clean yet; empty when it is."""
        return [*self._in_use()] or ["it is being removed"] * self._data.exists()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                waits = self._remove()
            except OSError as trouble:
                waits = [str(trouble)]
            if not waits:
                log.info("nothing of the driver is left on this node")
                return
            log.warning("nothing is removed yet", extra={"facts": {"because": waits}})
            self._stopped.wait(_LOOK)

    def _remove(self) -> list[str]:
        waits = list(self._in_use())
        if waits:
            return waits
        self._cdi.sweep()
        self._sockets.remove_stale()
        if self._data.exists():
            shutil.rmtree(self._data)
        return []

    def _in_use(self) -> Iterator[str]:
        if any(path.is_socket() and not is_stale(path) for path in self._data.glob("*.sock")):
            yield "the driver still runs: uninstall it first"
        held = {path.stem for path in (self._data / "claims").glob("*.json")} | set(self._cdi.claims())
        if held:
            yield f"claims are prepared, end their pods while the driver runs: {', '.join(sorted(held))}"
