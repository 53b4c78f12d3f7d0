"""The gRPC service through which the kubelet registers this driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from testbed.kubelet.stubs import registration_v1_pb2

# The kubelet takes the first that it knows, so the newest comes first. These are names of its own, not the paths of the gRPC services.
SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")


class RegistrationService:
    """Tells the kubelet who this is; `on_status` is called with what the kubelet made of it."""

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
        """Who this is."""
        self._on_get_info()
        return self._info

    def NotifyRegistrationStatus(self, request: Any, _context: grpc.ServicerContext) -> Any:  # noqa: N802 - as on the wire
        """What became of it. A refusal is survived: the kubelet tries again by itself."""
        self._on_status(request.plugin_registered, request.error)
        return registration_v1_pb2.RegistrationStatusResponse()
