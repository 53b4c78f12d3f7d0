"""What all verbs need to know about a run: the API client, the driver under test, the cluster. It is passed explicitly."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from testbed.drivers.published.record import SliceRecord, devices_in
from testbed.drivers.published.slices import Device
from testbed.drivers.ready import KeptNodes, expected_nodes
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile
from testbed.providers.base import Cluster
from testbed.vocabulary.pods.probe_results import ProbeResults

RESOURCE = "resource.k8s.io/v1"


@dataclass(frozen=True)
class World:
    """One cluster with one driver under test.

    `owner` is the testbed. `manifests` is the folder of the suites' manifests. `process` labels all created objects with the pytest
    process, so that another process can clean up after one that was killed. `companions` are other drivers, for claims that need
    several. `cluster` gives access to nodes; only requirements that need a Capability use it. `probe_results` has the newest output
    of each probe. `kept_nodes` are the nodes where drivers must run, from before they were installed. `record` has what slices said.
    `folder` is the testbed's state folder.
    """

    owner: Owner
    kube: Kube
    driver_file: DriverFile
    manifests: Path
    workload_image: str
    process: str = ""
    companions: tuple[DriverFile, ...] = ()
    cluster: Cluster | None = None
    kept_nodes: KeptNodes = field(default_factory=dict, repr=False)
    folder: Path = Path()
    probe_results: ProbeResults = field(default_factory=ProbeResults, repr=False, compare=False)
    record: SliceRecord = field(default_factory=SliceRecord, repr=False, compare=False)

    @cached_property
    def class_selectors(self) -> tuple[str, ...]:
        """Return the CEL expressions of the driver file's DeviceClass: the driver may publish other kinds of devices too."""
        found = self.kube.find(RESOURCE, "DeviceClass", self.driver_file.device_class) or {}
        selectors = found.get("spec", {}).get("selectors") or ()
        return tuple(str(each["cel"]["expression"]) for each in selectors if "cel" in each)

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes where the driver must run."""
        return expected_nodes(self.kube, self.driver_file, self.kept_nodes)

    @property
    def node_labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of the nodes where the driver must run, by their names."""
        labels = {
            each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in self.kube.list("v1", "Node")
        }
        return {name: labels.get(name, {}) for name in sorted(self.nodes)}

    def slices(self) -> list[Object]:
        """Return the driver's ResourceSlices, and remember the devices in them."""
        found = self.kube.list(RESOURCE, "ResourceSlice", fieldSelector=f"spec.driver={self.driver_file.driver}")
        self.record.observe(found)
        return found

    def slices_with_devices_in_use(self) -> list[Object]:
        """Return the slices as if the driver still published the devices that it removed from them while claims use them."""
        found = self.slices()
        absent = self.record.absent_from(found, self.driver_file.driver)
        return self.record.added_to(found, absent & self.devices_in_use()) if absent else found

    def returning_devices(self) -> frozenset[Device]:
        """Return the devices that the driver removed from its slices and that no claim uses any more."""
        absent = self.record.absent_from(self.slices(), self.driver_file.driver)
        return absent - self.devices_in_use() if absent else absent

    def devices_in_use(self) -> frozenset[Device]:
        """Return the devices that are allocated to any claim, also those of other drivers."""
        claims = self.kube.list(RESOURCE, "ResourceClaim")
        return frozenset(device for claim in claims for device in devices_in(claim))
