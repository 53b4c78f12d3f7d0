"""The gRPC service through which the kubelet registers this driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from testbed.kubelet.stubs import registration_v1_pb2

# The kubelet uses the first one that it supports, so the newest is first. These names are not the paths of the gRPC services.
SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")


class RegistrationService:
    """The servicer that answers the kubelet's registration calls. `on_status` is called with success and error of a registration."""

    def __init__(
        self,
        driver: str,
        endpoint: Path,
        on_status: Callable[[bool, str], None],
        on_get_info: Callable[[], None] = lambda: None,
    ) -> None:
        self._info = registration_v1_pb2.PluginInfo(
            type="DRAPlugin", name=driver, endpoint=str(endpoint), supported_versions=SERVICES
        )
        self._on_status, self._on_get_info = on_status, on_get_info

    def GetInfo(self, _request: Any, _context: grpc.ServicerContext) -> registration_v1_pb2.PluginInfo:  # noqa: N802 - as on the wire
        """Return the driver's name, its DRA socket and its services."""
        self._on_get_info()
        return self._info

    def NotifyRegistrationStatus(self, request: Any, _context: grpc.ServicerContext) -> Any:  # noqa: N802 - as on the wire
        """Receive the result of the registration. After a refusal the kubelet tries again, so the driver keeps running."""
        self._on_status(request.plugin_registered, request.error)
        return registration_v1_pb2.RegistrationStatusResponse()
