"""Serves the two sockets that the kubelet connects to.

The order matters. At start, the DRA socket is first and the registration socket last, because the kubelet connects as soon as it sees that
one. At stop, the registration socket is first; then running calls finish. In between, a socket that was removed is created again, and the
kubelet, which notices the new file, registers the driver again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

from fake_driver.devices.health import HealthStore
from fake_driver.errors import ConfigurationError
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.kubelet.dra_service import DraService
from fake_driver.kubelet.health_service import MAX_STREAMS, HealthService
from fake_driver.kubelet.listener import Listener
from fake_driver.kubelet.registration import RegistrationService
from fake_driver.kubelet.socket_paths import SocketPaths
from fake_driver.preparing.driver import Driver
from testbed.kubelet.stubs import (
    dra_health_v1_pb2,
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2,
    dra_health_v1alpha1_pb2_grpc,
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    registration_v1_pb2_grpc,
)

log = logging.getLogger(__name__)
_STOP_GRACE = 8.0  # seconds for running calls when the driver stops; its pod has 10
_CALL_TIMEOUT = 45.0  # seconds that the kubelet waits for a response
_MAX_CALLS = 8 + 2 * MAX_STREAMS  # at the same time: prepare and unprepare, and the health streams of two versions
_CHECK_INTERVAL = 1.0  # seconds between checks that the sockets exist


class PluginServer:
    """Both sockets with their services. `registered` is set while the kubelet has registered the driver."""

    def __init__(
        self,
        driver: Driver,
        health_store: HealthStore,
        journal: Journal,
        sockets: SocketPaths,
        armed_faults: ArmedFaults,
        dra_service: type[DraService] = DraService,
        on_get_info: Callable[[], None] = lambda: None,
    ) -> None:
        self.registered = threading.Event()
        self._journal, self._sockets, self._health_store = journal, sockets, health_store
        self._dra_services = [
            dra_service(driver, journal, messages, armed_faults) for messages in (dra_v1_pb2, dra_v1beta1_pb2)
        ]
        self._health_services = [
            HealthService(health_store, messages, journal) for messages in (dra_health_v1_pb2, dra_health_v1alpha1_pb2)
        ]
        self._on_get_info = on_get_info
        self._registration_service = RegistrationService(
            driver.name, sockets.service, self._handle_status, self._handle_get_info
        )
        self._dra_listener = Listener(sockets.service, self._dra_server, _CALL_TIMEOUT)
        self._registration_listener = Listener(sockets.registration, self._registration_server, 0)
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._run, name="sockets", daemon=True)

    def start(self, *, register: bool = True) -> None:
        """Open the sockets; if `register` is False, only the DRA socket, which the kubelet then does not find."""
        self._sockets.prepare_folders()
        self._dra_listener.open()
        if register:
            self._registration_listener.open()
        self._watch.start()

    def stop(self) -> None:
        """Refuse new calls, let running ones finish, and remove the sockets."""
        self._stopped.set()
        if self._watch.is_alive():
            self._watch.join()
        registration_closed = self._registration_listener.close(0)
        self._health_store.close()
        self._dra_listener.close(_STOP_GRACE).wait(_STOP_GRACE + 0.5)
        registration_closed.wait(1)

    def _run(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL):
            for listener in (self._dra_listener, self._registration_listener):
                if listener.is_file_missing():
                    self._reopen(listener)

    def _reopen(self, listener: Listener) -> None:
        self._journal.record("socket-gone", socket=str(listener.path))
        if listener is self._registration_listener:
            self.registered.clear()
        try:
            listener.reopen()
        except (ConfigurationError, OSError) as refused:
            log.warning("%s; trying again", refused)

    def _handle_get_info(self) -> None:
        self._journal.record("get-info")
        self._on_get_info()

    def _handle_status(self, registered: bool, error: str) -> None:
        self._journal.record("registration", registered=registered, **({"error": error} if error else {}))
        if registered:
            self.registered.set()
            return
        self.registered.clear()
        log.error("the kubelet refused to register this driver: %s", error)

    def _dra_server(self) -> grpc.Server:
        server = _grpc_server(_MAX_CALLS, "dra")
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(self._dra_services[0], server)
        dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(self._dra_services[1], server)
        dra_health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self._health_services[0], server)
        dra_health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self._health_services[1], server)
        return server

    def _registration_server(self) -> grpc.Server:
        server = _grpc_server(2, "registration")
        registration_v1_pb2_grpc.add_RegistrationServicer_to_server(self._registration_service, server)
        return server


def _grpc_server(workers: int, name: str) -> grpc.Server:
    return grpc.server(ThreadPoolExecutor(workers, thread_name_prefix=name))
