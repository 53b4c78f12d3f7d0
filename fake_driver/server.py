"""Serves the two sockets that the kubelet talks to.

Order matters. Up: the DRA socket first, the registration socket last, for the kubelet calls as soon as it has seen that one. Down: the
registration socket first, then the calls that are under way come to their end.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from fake_driver.driver import Driver
from fake_driver.errors import ConfigurationError
from fake_driver.journal import Journal
from fake_driver.services import DraService, RegistrationService
from fake_driver.sockets import Sockets
from testbed.kubelet.stubs import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    registration_v1_pb2_grpc,
)

log = logging.getLogger(__name__)
_LAST_CALLS = 0.7  # seconds that calls get to finish when the driver is told to stop


class Server:
    """Both sockets with their servicers."""

    def __init__(self, driver: Driver, journal: Journal, sockets: Sockets) -> None:
        self.registered = threading.Event()
        self._journal, self._sockets = journal, sockets
        self._service = _grpc_server(8, "dra")
        v1, v1beta1 = (DraService(driver, journal, module) for module in (dra_v1_pb2, dra_v1beta1_pb2))
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(v1, self._service)
        dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(v1beta1, self._service)
        self._registration = _grpc_server(2, "registration")
        registration_v1_pb2_grpc.add_RegistrationServicer_to_server(
            RegistrationService(driver.name, sockets.service, self._told), self._registration
        )

    def start(self, *, register: bool = True) -> None:
        """Serve; without `register` the kubelet never learns of it."""
        self._sockets.make_room()
        _listen(self._service, self._sockets.service)
        if register:
            _listen(self._registration, self._sockets.registration)

    def stop(self) -> None:
        """Leave: no new calls, the old ones come to their end, no socket stays behind."""
        self._sockets.registration.unlink(missing_ok=True)
        gone = self._registration.stop(0)
        self._service.stop(_LAST_CALLS).wait(_LAST_CALLS + 1)
        gone.wait(1)
        self._sockets.service.unlink(missing_ok=True)

    def _told(self, registered: bool, error: str) -> None:
        self._journal.note("registration", registered=registered, **({"error": error} if error else {}))
        if registered:
            self.registered.set()
            return
        self.registered.clear()
        log.error("the kubelet refused this driver: %s", error)


def _grpc_server(workers: int, name: str) -> grpc.Server:
    return grpc.server(ThreadPoolExecutor(workers, thread_name_prefix=name))


def _listen(server: grpc.Server, path: Path) -> None:
    before = os.umask(0o177)  # the socket is born with 0600; nobody else makes files at this point
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as refused:
        raise ConfigurationError(f"cannot listen on {path}: {refused}") from refused
    finally:
        os.umask(before)
    server.start()
