"""Serves the two sockets that the kubelet talks to.

Order matters. Up: the DRA socket first, the registration socket last, for the kubelet calls as soon as it has seen that one. Down: the
registration socket first, then the calls that are under way come to their end. In between, a socket that somebody removed comes back,
and the kubelet, which sees it come, registers the driver again.
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
# Seconds that calls get to finish when the driver is told to stop; its pod has 10. Where none is under way nobody waits.
_LAST_CALLS = 8.0
_LONGEST_CALL = 45.0  # seconds that the kubelet waits for an answer
_CALLS = 8 + 2 * MAX_STREAMS  # at once: prepare and unprepare, and the health streams of two versions
_LOOK = 1.0  # seconds between looks at the sockets


class PluginServer:
    """Both sockets with their servicers."""

    def __init__(
        self,
        driver: Driver,
        health_store: HealthStore,
        journal: Journal,
        sockets: SocketPaths,
        armed_faults: ArmedFaults,
        service: type[DraService] = DraService,
        on_get_info: Callable[[], None] = lambda: None,
    ) -> None:
        self.registered = threading.Event()
        self._journal, self._sockets, self._health_store = journal, sockets, health_store
        self._dra = [service(driver, journal, messages, armed_faults) for messages in (dra_v1_pb2, dra_v1beta1_pb2)]
        self._health = [
            HealthService(health_store, messages, journal) for messages in (dra_health_v1_pb2, dra_health_v1alpha1_pb2)
        ]
        self._on_get_info = on_get_info
        self._who = RegistrationService(driver.name, sockets.service, self._told, self._introduce)
        self._service = Listener(sockets.service, self._make_service, _LONGEST_CALL)
        self._registration = Listener(sockets.registration, self._make_registration, 0)
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._keep, name="sockets", daemon=True)

    def start(self, *, register: bool = True) -> None:
        """Serve; without `register` the kubelet never learns of it."""
        self._sockets.create_folders()
        self._service.open()
        if register:
            self._registration.open()
        self._watch.start()

    def stop(self) -> None:
        """Leave: no new calls, the old ones come to their end, no socket stays behind."""
        self._stopped.set()
        if self._watch.is_alive():
            self._watch.join()
        gone = self._registration.close(0)
        self._health_store.close()
        self._service.close(_LAST_CALLS).wait(_LAST_CALLS + 0.5)
        gone.wait(1)

    def _keep(self) -> None:
        while not self._stopped.wait(_LOOK):
            for listener in (self._service, self._registration):
                if listener.is_file_missing():
                    self._bring_back(listener)

    def _bring_back(self, listener: Listener) -> None:
        self._journal.record("socket-gone", socket=str(listener.path))
        if listener is self._registration:
            self.registered.clear()
        try:
            listener.reopen()
        except (ConfigurationError, OSError) as refused:
            log.warning("%s; trying again", refused)

    def _introduce(self) -> None:
        self._journal.record("get-info")
        self._on_get_info()

    def _told(self, registered: bool, error: str) -> None:
        self._journal.record("registration", registered=registered, **({"error": error} if error else {}))
        if registered:
            self.registered.set()
            return
        self.registered.clear()
        log.error("the kubelet refused this driver: %s", error)

    def _make_service(self) -> grpc.Server:
        server = _grpc_server(_CALLS, "dra")
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(self._dra[0], server)
        dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(self._dra[1], server)
        dra_health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self._health[0], server)
        dra_health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self._health[1], server)
        return server

    def _make_registration(self) -> grpc.Server:
        server = _grpc_server(2, "registration")
        registration_v1_pb2_grpc.add_RegistrationServicer_to_server(self._who, server)
        return server


def _grpc_server(workers: int, name: str) -> grpc.Server:
    return grpc.server(ThreadPoolExecutor(workers, thread_name_prefix=name))
