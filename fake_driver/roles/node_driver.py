"""The node driver: `Parts` is what it is made of, and `NodeProcess` assembles and runs it. `__main__` starts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import ApiClient
from fake_driver.control.control_socket import ControlSocket
from fake_driver.control.live_hardware import Dependents, LiveHardware
from fake_driver.control.request_handler import RequestHandler
from fake_driver.crash_points import ArmedCrashes
from fake_driver.devices.health import Health, HealthStore, initial_health
from fake_driver.devices.model import Device
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.kubelet.dra_service import DraService
from fake_driver.kubelet.server import PluginServer
from fake_driver.kubelet.socket_paths import SocketPaths
from fake_driver.preparing import accepted_claims, device_status
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.preparing.checkpoint import Checkpoint
from fake_driver.preparing.claims import AllocatedDevice
from fake_driver.preparing.device_metadata import MetadataFolder
from fake_driver.preparing.driver import Collaborators, Driver, NodeFiles, NoStatusUpdates
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.status_reporter import StatusReporter
from fake_driver.publishing import slices, validation
from fake_driver.publishing.planner import Planner, plan
from fake_driver.publishing.publisher import Publisher
from fake_driver.roles.metrics import Gauge, Metrics
from fake_driver.roles.probes import ProbeServer
from fake_driver.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Parts(Collaborators):
    """What a node driver is assembled from: the driver's collaborators and what surrounds it. A mutant replaces one of the fields."""

    data: Path
    driver: type[Driver] = Driver
    status_data: device_status.StatusData = device_status.status_data
    checkpoint: type[Checkpoint] = Checkpoint
    metadata_folder: type[MetadataFolder] = MetadataFolder
    claim_client: type[ClaimClient] = ClaimClient
    writes_status: bool = True
    published_devices: Callable[[Inventory], Sequence[Device]] = lambda inventory: inventory.devices
    alter_slices: Callable[[list[slices.Object]], list[slices.Object]] = lambda wanted: wanted
    plan: Planner = plan
    publisher: type[Publisher] = Publisher
    publishes: bool = True
    initial_health: Callable[[Device], Health] = initial_health
    health_store: type[HealthStore] = HealthStore
    dra_service: type[DraService] = DraService
    on_get_info: Callable[[], None] = lambda: None
    registers: bool = True


def read_parts(settings: Settings) -> Parts:
    """Return the parts of a correct driver, with the devices of the hardware file. Raise ConfigurationError if they cannot be published."""
    hardware = hardware_file.read(Path(settings.hardware))
    here, *network = pools(hardware, settings.node, settings.kind_names)
    validation.require_valid(
        slices.for_node(settings.driver, slices.Owner(settings.node, ""), here.devices), settings.hardware
    )
    inventory = Inventory(settings.node, here.devices, tuple(network))
    return Parts(inventory, data=settings.data, accepted=accepted_claims.rules(settings.accepted_claims))


class NodeProcess:
    """Everything that runs in the process of a node driver."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._settings, self._parts = settings, parts
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.metrics = Metrics(self._gauges())
        self.journal = Journal(settings.data / "journal.jsonl", on_event=self.metrics.record_event)
        self._api = ApiClient.from_settings(settings, self.metrics.record_request)
        self._claims = parts.claim_client(self._api)
        self._armed_faults, self._armed_crashes = ArmedFaults(self.journal), ArmedCrashes(self.journal)
        self._reporter = StatusReporter(self._claims, settings.driver, settings.node, self._status_data, self.journal)
        files = self._new_files()
        self.driver = self._new_driver(files)
        self.health_store = parts.health_store(
            {(pool, device.name): parts.initial_health(device) for pool, device in parts.inventory.with_pools()}
        )
        sockets = SocketPaths(settings.driver, settings.pod_uid, Path(settings.registry), settings.data)
        self._server = self._new_server(sockets)
        self._publisher = parts.publisher(
            self._api, settings.driver, settings.node, self._slices, self.journal, parts.plan
        )
        self._hardware = self._new_hardware()
        self._control = self._new_control(sockets, files)
        checks = {"/readyz": self.not_ready_reasons, "/healthz": self.not_alive_reasons}
        address = settings.probe_address
        self._probes = ProbeServer(address, checks, self.metrics.pages()) if address else None

    def _new_files(self) -> NodeFiles:
        settings, parts = self._settings, self._parts
        cdi = CdiFolder(Path(settings.cdi), settings.driver, self.journal.record)
        node_pool = parts.inventory.pool
        return NodeFiles(
            parts.checkpoint(settings.data / "claims", lambda uid: cdi.rebuild_claim(uid, node_pool)),
            cdi,
            parts.metadata_folder(
                settings.data / "metadata", settings.driver, settings.metadata_versions, parts.status_data
            ),
        )

    def _new_driver(self, files: NodeFiles) -> Driver:
        collaborators = replace(self._parts, at_crash_point=self._at_crash_point)
        status_updates = self._reporter if self._parts.writes_status else NoStatusUpdates()
        return self._parts.driver(self._settings.driver, collaborators, files, self._claims, status_updates)

    def _new_server(self, sockets: SocketPaths) -> PluginServer:
        return PluginServer(
            self.driver,
            self.health_store,
            self.journal,
            sockets,
            self._armed_faults,
            self._parts.dra_service,
            self._parts.on_get_info,
        )

    def _new_hardware(self) -> LiveHardware:
        dependents = Dependents(
            self._parts.inventory,
            self.health_store,
            self._parts.initial_health,
            self._publisher.refresh,
            self.journal,
        )
        return LiveHardware(self._settings.driver, self._settings.data / "hardware-changes.json", dependents)

    def _new_control(self, sockets: SocketPaths, files: NodeFiles) -> ControlSocket:
        handler = RequestHandler(
            self._settings,
            self._hardware,
            self._armed_faults,
            self._armed_crashes,
            files.cdi,
            self.journal,
            self._release,
        )
        return ControlSocket(sockets.control, handler.handle)

    def start(self) -> None:
        """Recover prepared claims, serve and register with the kubelet, and start the threads that write to the API server."""
        self.driver.recover()
        self._server.start(register=self._parts.registers)
        if self._parts.publishes:
            self._publisher.start()
        if self._parts.writes_status:
            self._reporter.start()
        if self._probes:
            self._probes.start()
        self._control.start()

    def stop(self) -> None:
        """Deregister and finish running calls, then cancel requests to the API server."""
        self._control.stop()
        self._armed_faults.clear()
        self._armed_crashes.clear()
        self._server.stop()
        self._api.close()
        self._publisher.stop()
        self._reporter.stop()
        if self._probes:
            self._probes.stop()

    def not_ready_reasons(self) -> list[str]:
        """Return why the driver is not ready; an empty list if it is ready."""
        conditions = (
            (self._server.registered, "the kubelet has not registered this driver"),
            (self._publisher.published, "the slices are not published"),
        )
        return [text for event, text in conditions if not event.is_set()]

    def not_alive_reasons(self) -> list[str]:
        """Return which threads have ended that must run; an empty list if all run."""
        return ["the publisher ended"] if self._parts.publishes and not self._publisher.is_alive else []

    def _gauges(self) -> dict[str, Gauge]:
        identity = (("driver", self._settings.driver), ("node", self._settings.node))
        return {
            "fake_driver_info": lambda: {identity: 1},
            "fake_driver_slices": lambda: {(): self._publisher.slice_count},
            "fake_driver_devices": lambda: {
                (("health", status),): count for status, count in self.health_store.count_by_status().items()
            },
            "fake_driver_claims_prepared": lambda: {(): self.driver.prepared},
        }

    def _at_crash_point(self, point: str) -> None:
        self._armed_crashes.reached(point)
        self._parts.at_crash_point(point)

    def _release(self, uid: str, force: bool) -> bool:
        return self.driver.release(uid, force=force)

    def _status_data(self, allocated: AllocatedDevice) -> dict[str, Any]:
        device = self._parts.inventory.find(allocated.pool, allocated.device)
        return self._parts.status_data(device, allocated)

    def _slices(self, owner: slices.Owner) -> list[slices.Object]:
        layout = slices.Layout(self._hardware.base, self._publisher.slice_names)
        devices = self._parts.published_devices(self._parts.inventory)
        return self._parts.alter_slices(slices.for_node(self.driver.name, owner, devices, layout))
