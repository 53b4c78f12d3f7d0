"""The network role: publish the pools that belong to no node, and attach their devices. One process for a cluster.

No kubelet connects to it. The node drivers prepare these devices on the nodes where their pods run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fake_driver.api.client import ApiClient
from fake_driver.devices.model import Device, Hardware
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.journal import Journal
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing import slices, validation
from fake_driver.publishing.publisher import Publisher
from fake_driver.roles.attaching_controller import AttachController
from fake_driver.roles.metrics import Gauge, Metrics
from fake_driver.roles.probes import ProbeServer
from fake_driver.settings import Settings

# In a hardware file, patterns of node names also select pools; this name matches none of them.
_NO_NODE = "no-node"


class NetworkDriverProcess:
    """Everything that runs in the process of the network driver."""

    def __init__(self, settings: Settings) -> None:
        hardware = hardware_file.read(Path(settings.hardware))
        _, *found = pools(hardware, _NO_NODE, settings.kind_names)
        validation.require_valid(slices.for_network(settings.driver, found), settings.hardware)
        settings.data.mkdir(parents=True, exist_ok=True)
        metrics = Metrics(self._gauges(settings))
        journal = Journal(settings.data / "journal-network.jsonl", on_event=metrics.record_event)
        self._api = ApiClient.from_settings(settings, metrics.record_request)
        self._publisher = Publisher(
            self._api, settings.driver, "", lambda owner: slices.for_network(settings.driver, found, owner), journal
        )
        self._attacher = AttachController(self._api, settings.driver, _finder(hardware, settings), journal)
        self._attaches = any(group.binding and group.binding.attaching for group in hardware.all_groups)
        checks = {"/readyz": self.not_ready_reasons, "/healthz": self.not_alive_reasons}
        address = settings.probe_address
        self._probes = ProbeServer(address, checks, metrics.pages()) if address else None

    def start(self) -> None:
        """Publish, attach devices if the hardware file says so, and serve probes."""
        self._publisher.start()
        if self._attaches:
            self._attacher.start()
        if self._probes:
            self._probes.start()

    def stop(self) -> None:
        """Stop. The slices stay."""
        self._api.close()
        self._publisher.stop()
        self._attacher.stop()
        if self._probes:
            self._probes.stop()

    def not_ready_reasons(self) -> list[str]:
        """Return why the pools cannot be used yet; an empty list if they can."""
        return [] if self._publisher.published.is_set() else ["the slices are not published"]

    def not_alive_reasons(self) -> list[str]:
        """Return which threads have ended although they must not."""
        parts = (("publisher", self._publisher.is_alive), ("attacher", not self._attaches or self._attacher.is_alive))
        return [f"the {name} ended" for name, is_alive in parts if not is_alive]

    def _gauges(self, settings: Settings) -> dict[str, Gauge]:
        return {
            "fake_driver_info": lambda: {(("driver", settings.driver), ("node", "")): 1},
            "fake_driver_slices": lambda: {(): self._publisher.slice_count},
        }


def _finder(hardware: Hardware, settings: Settings) -> Callable[[str, str], Device]:
    """Return a function that finds a device by pool and name; the pool of a node has the node's name."""
    known: dict[str, Inventory] = {}

    def find(pool: str, device: str) -> Device:
        if pool not in known:
            here, *network = pools(hardware, pool, settings.kind_names)
            known[pool] = Inventory(pool, here.devices, network)
        return known[pool].find(pool, device)

    return find
