"""The other role of the driver: publish the pools that belong to no node. One process for a cluster; it serves no kubelet.

The drivers on the nodes know these devices, too: they prepare them wherever a claim for them ends up.
"""

from __future__ import annotations

from pathlib import Path

from fake_driver import slices, wiring
from fake_driver.hardware import description
from fake_driver.hardware.devices import pools
from fake_driver.journal import Journal
from fake_driver.metrics import Gauge, Metrics
from fake_driver.probes import Probes
from fake_driver.publisher import Publisher
from fake_driver.settings import Settings

# Patterns of node names in a hardware file mean pools here, and no pool of a file is called so.
_NO_NODE = "no-node"


class NetworkProcess:
    """All that runs in this role, from start to stop."""

    def __init__(self, settings: Settings) -> None:
        hardware = description.read(Path(settings.hardware))
        _, *found = pools(hardware, _NO_NODE, settings.kind_words)
        settings.data.mkdir(parents=True, exist_ok=True)
        metrics = Metrics(self._gauges(settings))
        journal = Journal(settings.data / "journal-network.jsonl", heard=metrics.heard)
        self._api = wiring.api(settings, metrics)
        self._publisher = Publisher(
            self._api, settings.driver, "", lambda owner: slices.of_network(settings.driver, found, owner), journal
        )
        checks = {"/readyz": self.missing, "/healthz": self.broken}
        self._probes = Probes(settings.probe_address, checks, wiring.pages(metrics)) if settings.probe_address else None

    def start(self) -> None:
        """Publish, and answer probes."""
        self._publisher.start()
        if self._probes:
            self._probes.start()

    def stop(self) -> None:
        """End; the slices stay."""
        self._api.close()
        self._publisher.stop()
        if self._probes:
            self._probes.stop()

    def missing(self) -> list[str]:
        """Why nobody can use the pools yet."""
        return [] if self._publisher.published.is_set() else ["the slices are not published"]

    def broken(self) -> list[str]:
        """What ended that must not end."""
        return [] if self._publisher.alive else ["the publisher ended"]

    def _gauges(self, settings: Settings) -> dict[str, Gauge]:
        return {
            "fake_driver_info": lambda: {(("driver", settings.driver), ("node", "")): 1},
            "fake_driver_slices": lambda: {(): self._publisher.count},
        }
