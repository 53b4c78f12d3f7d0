"""The word `driver`: the driver under test as it shows itself in the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.drivers import expected_nodes
from testbed.drivers.slices import Device, pools
from testbed.vocabulary.world import World


@dataclass(frozen=True)
class Driver:
    """The driver under test."""

    world: World

    @property
    def name(self) -> str:
        """Its name in Kubernetes."""
        return self.world.driver_file.driver

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes where its driver file expects it."""
        return expected_nodes(self.world.kube, self.world.driver_file)

    @property
    def devices(self) -> frozenset[Device]:
        """Every device that it publishes."""
        return frozenset(
            Device(self.name, pool.name, device["name"])
            for pool in pools(self.world.slices(), self.name)
            for each in pool.slices
            for device in each["spec"].get("devices") or ()
        )
