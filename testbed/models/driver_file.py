"""The driver file (kind DriverFile), which describes a driver under test and is written by its vendor.

`drivers` installs and finds a driver by it; suites learn from it how a container shows its device.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from testbed.errors import UsageError
from testbed.models import document
from testbed.models.document import Problem, format_location
from testbed.models.driver.devices import Devices, Examples
from testbed.models.driver.install import ExistingFile, Install
from testbed.models.driver.probe import Probe
from testbed.models.driver.unsupported import unsupported_keys
from testbed.models.driver_sections import (
    Budgets,
    Classes,
    Configuration,
    Control,
    Known,
    OptionalFeatures,
    SharedCapacity,
    Toleration,
)
from testbed.models.features import EXEMPTIBLE, Exemption, Feature, derived_features, exemptions
from testbed.models.names import DriverName, LabelName, Selector
from testbed.models.strict import Strict, file_error, find_problems

Need = Literal["nri", "host-devices"]
MAX_ALLOCATION = 32  # devices in one allocation: resource.k8s.io/v1, AllocationResultsMaxSize


class Pods(Strict):
    """How to find the driver's pods."""

    namespace: LabelName = Field(description="Namespace of the pods.")
    selector: Selector = Field(description="Label selector that only these pods match.")
    container: LabelName = Field(description="Container of the driver in these pods, whose log is read.")


class Nodes(Strict):
    """The nodes on which the driver must run. By default, all that accept the tests' pods."""

    MOVED: ClassVar[Mapping[str, str]] = {"ownSlices": "spec.devices.belongTo: node, or network for ownSlices: false"}

    selector: dict[str, str] = Field(default_factory=dict, description="Labels of these nodes.")
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels that these nodes need: set on nodes that dra-testbed makes, required of nodes of an existing cluster.",
    )
    tolerations: tuple[Toleration, ...] = Field(
        (), description="Tolerations of the tests' pods. Nodes with other taints are left out."
    )


class DriverSpec(Strict):
    """What the testbed needs to know about a driver."""

    MOVED: ClassVar[Mapping[str, str]] = {
        "deviceClass": "spec.devices.classes, which is a list",
        "examples": "spec.devices.examples, where matchAttribute is match",
        "otherDevices": "spec.devices.others",
        "classes": "spec.optional, as NAME: {class: CLASS}",
        "sharing": "spec.optional.capacity, where capacity is name",
    }

    driver: DriverName = Field(description="Name of the driver in ResourceSlices and claims.")
    version: str = Field("", description="Version of the driver, for reports.")
    needs: tuple[Need, ...] = Field(
        (), description="What nodes must offer: nri, host-devices. Where it is missing, nothing is judged."
    )
    install: Install | None = Field(None, description="How to install the driver. Absent: it is installed already.")
    companions: tuple[ExistingFile, ...] = Field(
        (),
        description="Driver files of drivers that are installed with this one and not judged. Their companions are ignored.",
    )
    pods: Pods | None = Field(None, description="How to find the driver's pods. Required, unless install has process.")
    nodes: Nodes = Nodes()
    devices: Devices
    probe: Probe
    exempt: tuple[Exemption, ...] = Field(
        (),
        description="Features that this kind of driver cannot have. The report lists them, and their requirements are not judged.",
    )
    features: tuple[Feature, ...] = Field((), description="Optional features of the driver that no other key declares.")
    optional: OptionalFeatures = OptionalFeatures()
    configuration: Configuration | None = Field(None, description="Configuration of devices. Absent: it is not judged.")
    control: Control | None = Field(None, description="How tests change the hardware. Absent: it cannot be changed.")
    budgets: Budgets | None = None
    known: tuple[Known, ...] = Field((), description="Failures that the vendor knows of.")

    @model_validator(mode="after")
    def _needs_an_attribute_for_ids(self) -> DriverSpec:
        for key, probe in {"probe": self.probe, "probe.without": self.probe.without}.items():
            if probe and probe.shows_ids and not self.devices.identity:
                raise ValueError(f"has a group id in {key}, but no devices.identity to compare it with")
        return self

    @model_validator(mode="after")
    def _has_pods_unless_it_is_a_process(self) -> DriverSpec:
        process = self.install and self.install.process
        if process and self.pods:
            raise ValueError("has install.process, so pods has no effect; remove it")
        if not process and not self.pods:
            raise ValueError("has no pods, but must say how to find the driver's pods: namespace, selector, container")
        return self

    @model_validator(mode="after")
    def _knows_the_configuration_that_claims_need(self) -> DriverSpec:
        if self.devices.claim.configuration == "required" and not (self.configuration and self.configuration.one):
            raise ValueError("has devices.claim.configuration: required, which requires configuration.one")
        return self

    @model_validator(mode="after")
    def _lists_each_known_failure_once(self) -> DriverSpec:
        ids = [each.id for each in self.known]
        duplicates = sorted({each for each in ids if ids.count(each) > 1})
        if duplicates:
            raise ValueError(f"lists {duplicates[0]} more than once in known")
        return self


class Metadata(Strict):
    """The metadata of a driver file."""

    name: LabelName


class DriverFile(Strict):
    """A driver file. Paths in it are absolute."""

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["DriverFile"]
    metadata: Metadata
    spec: DriverSpec

    @property
    def name(self) -> str:
        """Return the name of the driver file."""
        return self.metadata.name

    @property
    def driver(self) -> str:
        """Return the driver's name in Kubernetes."""
        return self.spec.driver

    @property
    def device_class(self) -> str:
        """Return the first DeviceClass of the driver's ordinary devices, from which tests request them."""
        return self.spec.devices.classes[0]

    def for_class(self, name: str) -> DriverFile:
        """Return a copy whose first class, from which tests request devices, is this one."""
        classes = (name, *(each for each in self.devices.classes if each != name))
        devices = self.devices.model_copy(update={"classes": classes})
        return self.model_copy(update={"spec": self.spec.model_copy(update={"devices": devices})})

    @property
    def devices(self) -> Devices:
        """Return what the driver's ordinary devices are like."""
        return self.spec.devices

    @property
    def install(self) -> Install | None:
        """Return how to install the driver, or None if it is installed already."""
        return None if self.spec.install is None or self.spec.install.installed else self.spec.install

    @property
    def previous(self) -> DriverFile | None:
        """Return a driver file that installs the previous release, or None if this one names none."""
        before = self.install and self.install.as_previous()
        if before is None:
            return None
        return self.model_copy(update={"spec": self.spec.model_copy(update={"install": before})})

    @property
    def pull_secret(self) -> str:
        """Return the Secret with which the images of the driver and of test pods are pulled, or ''."""
        return self.spec.install.pull_secret if self.spec.install else ""

    @property
    def companions(self) -> tuple[Path, ...]:
        """Return the driver files of the companions."""
        return self.spec.companions

    @property
    def hardware(self) -> Literal["synthetic", "unknown"]:
        """Return 'synthetic' for a driver that dra-testbed builds, otherwise 'unknown'."""
        return "synthetic" if self.spec.install and self.spec.install.built_in_image else "unknown"

    @property
    def pods(self) -> Pods:
        """Return how to find the driver's pods. Those of a process are made by dra-testbed."""
        return self.spec.pods or _pods_of_process(self.driver)

    @property
    def nodes(self) -> Nodes:
        """Return the nodes on which the driver must run."""
        return self.spec.nodes

    @property
    def features(self) -> frozenset[str]:
        """Return all features of the driver: declared, derived from other keys, and those that every driver has unless exempt."""
        not_exempt = EXEMPTIBLE.keys() - self.spec.exempt
        derived = derived_features(self.spec.model_dump(by_alias=True)) | exemptions(self.spec.exempt)
        return frozenset({*not_exempt, *self.spec.features, *derived})

    @property
    def control(self) -> Control | None:
        """Return how tests change the hardware, or None."""
        return self.spec.control

    @property
    def examples(self) -> Examples:
        """Return the attributes and capacities that tests request."""
        return self.spec.devices.examples

    @property
    def configuration(self) -> Configuration | None:
        """Return how devices are configured, or None."""
        return self.spec.configuration

    @property
    def optional(self) -> OptionalFeatures:
        """Return the special devices."""
        return self.spec.optional

    @property
    def classes(self) -> Classes:
        """Return the classes of devices with optional features."""
        sections = ((name, getattr(self.spec.optional, name)) for name in Classes.model_fields)
        return Classes(**{name: section.device_class if section else None for name, section in sections})

    @property
    def sharing(self) -> SharedCapacity | None:
        """Return the amounts for claims that share a device, or None."""
        return self.spec.optional.capacity

    @property
    def other_devices(self) -> Mapping[str, tuple[str, ...]]:
        """Return attributes with value patterns of the devices that the class does not select."""
        return self.spec.devices.others

    @property
    def identity_attribute(self) -> str:
        """Return the attribute that tells devices apart, or '' if there is none."""
        return self.spec.devices.identity.attribute if self.spec.devices.identity else ""

    @property
    def is_identity_unique(self) -> bool:
        """Return True if no two devices of the cluster have the same identity."""
        return bool(self.spec.devices.identity and self.spec.devices.identity.scope == "cluster")

    @property
    def are_devices_local(self) -> bool:
        """Return True if each ordinary device belongs to one node, False if they are network-attached."""
        return self.spec.devices.belong_to == "node"

    @property
    def are_devices_shared(self) -> bool:
        """Return True if the ordinary devices are those that several claims can share."""
        return self.classes.capacity in self.spec.devices.classes

    @property
    def acts_on_sandboxes(self) -> bool:
        """Return True if the driver may act while the container runtime creates the sandbox of a pod: with NRI, or without CDI."""
        return "nri" in self.spec.needs or "cdi" in self.spec.exempt

    @property
    def given(self) -> frozenset[str]:
        """Return the assumptions of requirements about ordinary devices that this file makes true."""
        assumptions = {
            "local": self.are_devices_local,
            "few": self.devices.per_node <= MAX_ALLOCATION,
            "unshared": not self.are_devices_shared,
            "unconfigured": self.devices.claim.configuration == "optional",
            "alone": not self.devices.claim.with_,
            "one-class": len(self.devices.classes) == 1,
            "rights": not (self.install and self.install.process),
            "unforgeable": self.probe.is_unforgeable,
        }
        return frozenset(word for word, holds in assumptions.items() if holds)

    @property
    def known(self) -> tuple[Known, ...]:
        """Return the failures that the vendor knows of."""
        return self.spec.known

    @property
    def probe(self) -> Probe:
        """Return how a container shows its devices."""
        return self.spec.probe

    @property
    def printed_patterns(self) -> tuple[str, ...]:
        """Return the patterns of the lines that show devices and settings in a container."""
        settings = self.spec.configuration.settings if self.spec.configuration else {}
        return (self.spec.probe.pattern, *(each.shows for each in settings.values()))


def _pods_of_process(driver: str) -> Pods:
    name = f"process-{driver.replace('.', '-')}"[:63].rstrip("-")
    return Pods(namespace=name, selector=f"app={name}", container="driver")


def load_driver_file(path: Path) -> DriverFile:
    """Read a driver file. Raise UsageError if it has mistakes, needs what this version lacks, or names a file that does not exist."""
    found, problems = read_driver_file(path)
    if problems or found is None:
        raise file_error(path, problems)
    return found


def read_driver_file(path: Path) -> tuple[DriverFile | None, list[Problem]]:
    """Return a driver file, None if it is not valid, with all mistakes in it. Raise UsageError if it is not YAML."""
    source = document.read(path)
    found, problems = find_problems(source, DriverFile)
    if found is None:
        return None, problems
    unsupported = [
        Problem(
            source.line(each.location),
            format_location(each.location),
            f"is not supported by this version; {each.advice}",
        )
        for each in unsupported_keys(found.spec)
    ]
    return found, [*problems, *unsupported]


def load_companions(driver_file: DriverFile) -> tuple[DriverFile, ...]:
    """Read the driver files of a driver's companions. Raise UsageError if two have the same driver name or class."""
    found = tuple(load_driver_file(path) for path in driver_file.companions)
    for what in ("driver", "device_class"):
        names = [getattr(each, what) for each in (driver_file, *found)]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise UsageError(
                f"driver file {driver_file.name} and its companions have the same {what.replace('_', ' ')} {duplicates[0]}",
                hint="give each companion a driver name and a DeviceClass of its own",
            )
    return found
