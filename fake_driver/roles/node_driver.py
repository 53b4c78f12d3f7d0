"""Puts the parts together for one process. `__main__` and tests call it; a fault exchanges one of the parts before they are joined."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import ApiClient
from fake_driver.control.control_socket import ControlSocket
from fake_driver.control.live_hardware import Dependents, LiveHardware
from fake_driver.control.request_handler import RequestHandler
from fake_driver.devices.health import Health, HealthStore, initial_health
from fake_driver.devices.model import Device
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.kubelet.dra_service import DraService
from fake_driver.kubelet.server import PluginServer
from fake_driver.kubelet.socket_paths import SocketPaths
from fake_driver.preparing import cdi, claims, device_status, opaque_configuration
from fake_driver.preparing.cdi import CdiFolder, Environment
from fake_driver.preparing.checkpoint import Checkpoint
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, Object, PreparedClaim
from fake_driver.preparing.device_metadata import MetadataFolder
from fake_driver.preparing.driver import Collaborators, Driver, NoStatusUpdates
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.status_reporter import StatusReporter
from fake_driver.publishing import slices, validation
from fake_driver.publishing.planner import Planner, plan
from fake_driver.publishing.publisher import Publisher
from fake_driver.roles.metrics import CONTENT_TYPE, Gauge, Metrics
from fake_driver.roles.probes import Pages, ProbeServer
from fake_driver.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """What can be exchanged: what the driver has, says and does."""

    inventory: Inventory
    data: Path
    environment: Callable[[Device, AllocatedDevice, str], Environment] = cdi.environment
    config_order: opaque_configuration.Precedence = opaque_configuration.by_precedence
    conflict: Callable[[PreparedClaim, Mapping[str, PreparedClaim]], str] = claims.conflict
    driver: type[Driver] = Driver
    status_data: device_status.StatusData = device_status.status_data
    published_devices: Callable[[Inventory], Sequence[Device]] = lambda inventory: inventory.devices
    alter_slices: Callable[[list[slices.Object]], list[slices.Object]] = lambda wanted: wanted
    plan: Planner = plan
    publishes: bool = True
    registers: bool = True
    reports: bool = True
    claims: type[ClaimClient] = ClaimClient
    on_get_info: Callable[[], None] = lambda: None  # by a kubelet, who this is
    at_crash_point: Callable[[str], None] = lambda _point: None
    publisher: type[Publisher] = Publisher
    service: type[DraService] = DraService
    initial_health: Callable[[Device], Health] = initial_health
    health_store: type[HealthStore] = HealthStore
    metadata: type[MetadataFolder] = MetadataFolder


def read_parts(settings: Settings) -> Parts:
    """The right parts, as the hardware file says."""
    hardware = hardware_file.read(Path(settings.hardware))
    here, *network = pools(hardware, settings.node, settings.kind_names)
    validation.require_valid(
        slices.for_node(settings.driver, slices.Owner(settings.node, ""), here.devices), settings.hardware
    )
    return Parts(Inventory(settings.node, here.devices, tuple(network)), settings.data)


class NodeProcess:
    """All that runs in one process, from start to stop."""

    def __init__(self, settings: Settings, use: Parts) -> None:
        sockets = SocketPaths(settings.driver, settings.pod_uid, Path(settings.registry), settings.data)
        self._use = use
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.metrics = Metrics(self._gauges(settings))
        self._api = api(settings, self.metrics)
        self._claims = use.claims(self._api)
        self.journal = Journal(settings.data / "journal.jsonl", on_event=self.metrics.record_event)
        folder = CdiFolder(Path(settings.cdi), settings.driver, self.journal.record)
        checkpoint = Checkpoint(settings.data / "claims", lambda uid: folder.rebuild_claim(uid, use.inventory.pool))
        self._armed_faults = ArmedFaults(self.journal)
        self._reporter = StatusReporter(self._claims, settings.driver, settings.node, self._status_data, self.journal)
        self._metadata = use.metadata(
            settings.data / "metadata", settings.driver, settings.metadata_versions, use.status_data
        )
        self.driver = use.driver(settings.driver, self._collaborators(), folder, checkpoint)
        self.health_store = use.health_store(
            {(pool, one.name): use.initial_health(one) for pool, one in use.inventory.with_pools()}
        )
        self._server = PluginServer(
            self.driver, self.health_store, self.journal, sockets, self._armed_faults, use.service, use.on_get_info
        )
        self._publisher = use.publisher(self._api, settings.driver, settings.node, self._slices, self.journal, use.plan)
        self._hardware = LiveHardware(
            settings.driver,
            settings.data / "hardware-changes.json",
            Dependents(use.inventory, self.health_store, use.initial_health, self._publisher.refresh, self.journal),
        )
        requests = RequestHandler(settings, self._hardware, self._armed_faults, folder, self.journal, self._release)
        self._control = ControlSocket(sockets.control, requests.handle)
        checks = {"/readyz": self.not_ready_reasons, "/healthz": self.not_alive_reasons}
        self._probes = (
            ProbeServer(settings.probe_address, checks, pages(self.metrics)) if settings.probe_address else None
        )

    def start(self) -> None:
        """Serve, register and publish. The publisher comes last, because it is the only part that has to wait for others."""
        self.driver.recover()
        self._server.start(register=self._use.registers)
        if self._use.publishes:
            self._publisher.start()
        if self._use.reports:
            self._reporter.start()
        if self._probes:
            self._probes.start()
        self._control.start()

    def stop(self) -> None:
        """Leave quickly: the kubelet learns it first, calls under way end, then what still waits for the API server is cut off."""
        self._control.stop()
        self._armed_faults.clear()
        self._server.stop()
        self._api.close()
        self._publisher.stop()
        self._reporter.stop()
        if self._probes:
            self._probes.stop()

    def not_ready_reasons(self) -> list[str]:
        """Why nobody can use the driver yet; empty when it is ready."""
        waits = (
            (self._server.registered, "the kubelet has not registered this driver"),
            (self._publisher.published, "the slices are not published"),
        )
        return [text for event, text in waits if not event.is_set()]

    def not_alive_reasons(self) -> list[str]:
        """What ended that must not end."""
        return ["the publisher ended"] if self._use.publishes and not self._publisher.is_alive else []

    def _gauges(self, settings: Settings) -> dict[str, Gauge]:
        who = (("driver", settings.driver), ("node", settings.node))
        return {
            "fake_driver_info": lambda: {who: 1},
            "fake_driver_slices": lambda: {(): self._publisher.slice_count},
            "fake_driver_devices": lambda: {
                (("health", how),): n for how, n in self.health_store.count_by_status().items()
            },
            "fake_driver_claims_prepared": lambda: {(): self.driver.prepared},
        }

    def _collaborators(self) -> Collaborators:
        use = self._use
        reports = self._reporter if use.reports else NoStatusUpdates()
        return Collaborators(
            use.inventory,
            self._read_claim,
            use.environment,
            use.config_order,
            use.conflict,
            reports,
            self._metadata,
            self._at_crash_point,
        )

    def _at_crash_point(self, point: str) -> None:
        self._armed_faults.reached(point)
        self._use.at_crash_point(point)

    def _release(self, uid: str, force: bool) -> bool:
        return self.driver.release(uid, force=force)

    def _read_claim(self, ref: ClaimRef, patience: float) -> Object:
        return self._claims.get(ref.namespace, ref.name, patience)

    def _status_data(self, use: AllocatedDevice) -> dict[str, Any]:
        return self._use.status_data(self._use.inventory.find(use.pool, use.device), use)

    def _slices(self, owner: slices.Owner) -> list[slices.Object]:
        layout = slices.Layout(self._hardware.base, self._publisher.slice_names)
        devices = self._use.published_devices(self._use.inventory)
        return self._use.alter_slices(slices.for_node(self.driver.name, owner, devices, layout))


def pages(metrics: Metrics) -> Pages:
    """What programs may read beside the probes."""
    return {"/metrics": (CONTENT_TYPE, metrics.render)}


def api(settings: Settings, metrics: Metrics) -> ApiClient:
    """The API server as the settings say; the token goes only over TLS."""
    is_secure = settings.api_server.startswith("https:")
    token = Path(settings.token_file) if settings.token_file and is_secure else None
    authority = Path(settings.ca_file) if settings.ca_file else None
    return ApiClient(settings.api_server, token_file=token, ca_file=authority, on_response=metrics.record_request)
