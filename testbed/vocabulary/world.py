"""Everything that a word needs to know, in one place and passed explicitly: the API, the driver under test, the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile
from testbed.providers.base import Cluster
from testbed.vocabulary.pods.probe_results import ProbeResults

RESOURCE = "resource.k8s.io/v1"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")  # of a node, where runtimes look


@dataclass(frozen=True)
class World:
    """One cluster with one driver under test. `owner` is the testbed; `manifests` is where scenarios are found.

    `process` is on all that is made: a word for the pytest process, so that another can clear up after one that was killed.
    `companions` are drivers beside it, for claims that several drivers have a part in.
    `cluster` is for what goes past the API; only requirements with a Capability may want it. `looks` is what probes have printed.
    """

    owner: Owner
    kube: Kube
    driver_file: DriverFile
    manifests: Path
    workload_image: str
    process: str = ""
    companions: tuple[DriverFile, ...] = ()
    cluster: Cluster | None = None
    probe_results: ProbeResults = field(default_factory=ProbeResults, repr=False, compare=False)

    @cached_property
    def class_selectors(self) -> tuple[str, ...]:
        """What the DeviceClass of the driver file demands of devices: a driver may have other kinds under the same name."""
        found = self.kube.find(RESOURCE, "DeviceClass", self.driver_file.device_class) or {}
        selectors = found.get("spec", {}).get("selectors") or ()
        return tuple(str(each["cel"]["expression"]) for each in selectors if "cel" in each)

    def slices(self) -> list[Object]:
        """The driver's ResourceSlices."""
        return self.kube.list(RESOURCE, "ResourceSlice", fieldSelector=f"spec.driver={self.driver_file.driver}")
